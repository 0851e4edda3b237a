//! What a machine multiplies bytes with.

/// Instructions for sums of products of bytes. All give the same bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// `vpdpbusd` on vectors of 64 bytes.
    Avx512Vnni,
    /// `vpdpbusd` on vectors of 32 bytes.
    AvxVnni,
    /// `vpmaddwd` on bytes widened to 16 bits.
    Avx2,
    /// `sdot`.
    NeonDot,
    /// Any machine: plain loops.
    Portable,
}

impl Unit {
    const ALL: [Self; 5] =
        [Self::Avx512Vnni, Self::AvxVnni, Self::Avx2, Self::NeonDot, Self::Portable];

    /// Those of this machine, the fastest first.
    pub fn available() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|unit| unit.is_available())
    }

    /// The fastest of this machine.
    ///
    /// # Panics
    ///
    /// Never: plain loops run everywhere.
    #[must_use]
    pub fn best() -> Self {
        Self::available().next().expect("plain loops run everywhere")
    }

    /// Whether this machine has it.
    #[must_use]
    pub fn is_available(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Vnni => super::x86::has_avx512_vnni(),
            #[cfg(target_arch = "x86_64")]
            Self::AvxVnni => super::x86::has_avx_vnni(),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => super::x86::has_avx2(),
            #[cfg(target_arch = "aarch64")]
            Self::NeonDot => super::neon::has_dot(),
            Self::Portable => true,
            _ => false,
        }
    }

    /// Whether it reads activations widened to 16 bits.
    pub(super) fn is_wide(self) -> bool {
        self == Self::Avx2
    }
}
