//! What a command writes: never what it reads, and nothing that is there already unless `--force` says so.
//!
//! Files are compared by identity (device and number), so that a link, another spelling of the path or a redirection
//! (`fewtag data convert - x.conll < x.conll`) does not hide that two are one. Everything is checked before the work
//! begins: a mistake is told at once and not after hours.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};

/// Whether files that are there may be replaced
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Force {
    /// Replace what is there already
    #[arg(long)]
    force: bool,
}

impl Force {
    /// Whether `--force` was given.
    pub(crate) fn is_on(self) -> bool {
        self.force
    }

    /// Refuses to write these files if one of them is read, is there already, or has no directory to lie in.
    pub(crate) fn check<'a>(
        self,
        inputs: &Inputs,
        outputs: impl IntoIterator<Item = &'a Path>,
    ) -> anyhow::Result<()> {
        let mut before: Vec<PathBuf> = Vec::new();
        for path in outputs {
            let shown = path.display();
            let place = place(path)?;
            ensure!(!before.contains(&place), "`{shown}` would be written twice: give two names");
            before.push(place);
            let Ok(metadata) = std::fs::metadata(path) else { continue };
            ensure!(!metadata.is_dir(), "`{shown}` is a directory: give the name of a file");
            inputs.refuse(path)?;
            // A terminal or a pipe holds nothing that could be lost.
            ensure!(
                self.force || !metadata.is_file(),
                "`{shown}` is there already: --force replaces it"
            );
        }
        Ok(())
    }

    /// As [`Force::check`] for a directory that is made if it is missing; `files` are those that will be written there.
    pub(crate) fn check_directory(
        self,
        inputs: &Inputs,
        dir: &Path,
        files: &[&str],
    ) -> anyhow::Result<()> {
        if !dir.exists() {
            return Ok(());
        }
        ensure!(dir.is_dir(), "`{}` is a file: give the name of a directory", dir.display());
        inputs.refuse(dir)?;
        let files: Vec<PathBuf> = files.iter().map(|name| dir.join(name)).collect();
        self.check(inputs, files.iter().map(PathBuf::as_path))
    }
}

/// What a command reads, files and directories; `-` is standard input.
pub(crate) struct Inputs {
    files: Vec<(PathBuf, Identity)>,
}

impl Inputs {
    /// These; what is not there is left to whoever reads it.
    pub(crate) fn new<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> Self {
        let mut inputs = Self { files: Vec::new() };
        paths.into_iter().for_each(|path| inputs.add(path));
        inputs
    }

    fn add(&mut self, path: &Path) {
        self.files.extend(Identity::of(path).map(|identity| (path.to_owned(), identity)));
    }

    /// Also the files of the model or encoder in `dir`.
    pub(crate) fn and_model(mut self, dir: &Path) -> Self {
        self.add(dir);
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let is_weights = Path::new(&name).extension().is_some_and(|end| end == "safetensors");
            if is_weights || OF_A_MODEL.iter().any(|known| name == *known) {
                self.add(&entry.path());
            }
        }
        self
    }

    /// Refuses an output that is one of these.
    pub(crate) fn refuse(&self, output: &Path) -> anyhow::Result<()> {
        let Some(input) = Identity::of(output).and_then(|output| self.find(&output)) else {
            return Ok(());
        };
        let (output, input) = (output.display(), input.display());
        bail!("`{output}` would be overwritten, but it is also read (`{input}`): write elsewhere")
    }

    /// Refuses to print into a file that is read: it would grow for ever, or has just been emptied by the shell.
    pub(crate) fn refuse_standard_output(&self) -> anyhow::Result<()> {
        let Some(input) = Identity::of_standard_output().and_then(|output| self.find(&output))
        else {
            return Ok(());
        };
        bail!("`{}` is read and printed into: print into another file", input.display())
    }

    fn find(&self, file: &Identity) -> Option<&Path> {
        self.files.iter().find(|(_, input)| input == file).map(|(path, _)| path.as_path())
    }
}

/// What a directory of a model or an encoder is read from, besides its weights.
const OF_A_MODEL: [&str; 6] = [
    "fewtag.json",
    "config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.txt",
    "model.safetensors.index.json",
];

/// Refuses a directory within one that is read: what is written there would be read the next time.
pub(crate) fn refuse_inside(output: &Path, inputs: &[PathBuf]) -> anyhow::Result<()> {
    let mut above = output.ancestors();
    let real = above.find_map(|path| path.canonicalize().ok()).unwrap_or_default();
    let inside =
        |dir: &&PathBuf| dir.is_dir() && dir.canonicalize().is_ok_and(|dir| real.starts_with(dir));
    if let Some(dir) = inputs.iter().find(inside) {
        let (output, dir) = (output.display(), dir.display());
        bail!("`{output}` lies in `{dir}`, which is read: write to another directory");
    }
    Ok(())
}

/// Where a file lies or will lie, spelled in one way only.
fn place(path: &Path) -> anyhow::Result<PathBuf> {
    let shown = path.display();
    let name = path.file_name().with_context(|| format!("`{shown}` names no file"))?;
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    let real = parent.canonicalize();
    Ok(real
        .with_context(|| format!("cannot write `{shown}` into `{}`", parent.display()))?
        .join(name))
}

/// What a file is, however it is called.
#[derive(PartialEq, Eq)]
struct Identity {
    #[cfg(unix)]
    device_and_number: (u64, u64),
    #[cfg(not(unix))]
    path: PathBuf,
}

#[cfg(unix)]
impl Identity {
    fn of(path: &Path) -> Option<Self> {
        if path == Path::new("-") {
            return Self::of_stream(std::io::stdin());
        }
        Some(Self::new(&std::fs::metadata(path).ok()?))
    }

    fn of_standard_output() -> Option<Self> {
        Self::of_stream(std::io::stdout())
    }

    /// The file behind a redirection. Terminals, pipes and `/dev/null` may well be read and written.
    fn of_stream(stream: impl std::os::fd::AsFd) -> Option<Self> {
        let file = std::fs::File::from(stream.as_fd().try_clone_to_owned().ok()?);
        file.metadata().ok().filter(std::fs::Metadata::is_file).map(|found| Self::new(&found))
    }

    fn new(found: &std::fs::Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self { device_and_number: (found.dev(), found.ino()) }
    }
}

#[cfg(not(unix))]
impl Identity {
    fn of(path: &Path) -> Option<Self> {
        Some(Self { path: path.canonicalize().ok()? })
    }

    fn of_standard_output() -> Option<Self> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO: Force = Force { force: false };
    const YES: Force = Force { force: true };

    fn refusal(force: Force, inputs: &[PathBuf], outputs: &[&Path]) -> String {
        let checked = force.check(&Inputs::new(inputs), outputs.iter().copied());
        checked.expect_err("a refusal").to_string()
    }

    #[test]
    fn an_output_that_is_an_input_is_refused_whatever_it_is_called() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        std::fs::write(path("a"), "a").unwrap();
        std::fs::hard_link(path("a"), path("hard")).unwrap();
        let mut names = vec![path("a"), path("hard"), dir.path().join(".").join("a")];
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(path("a"), path("soft")).unwrap();
            names.push(path("soft"));
        }
        for name in &names {
            let message = refusal(YES, &[path("a")], &[name]);
            assert!(message.contains("it is also read"), "{message}");
        }
    }

    #[test]
    fn an_output_that_is_there_needs_force() {
        let dir = tempfile::tempdir().unwrap();
        let (a, new) = (dir.path().join("a"), dir.path().join("new"));
        std::fs::write(&a, "a").unwrap();
        assert!(refusal(NO, &[], &[&a]).contains("--force replaces it"));
        let none = Inputs::new([]);
        YES.check(&none, [a.as_path()]).unwrap();
        NO.check(&none, [new.as_path()]).unwrap();
        assert!(NO.check_directory(&none, dir.path(), &["a"]).is_err());
        NO.check_directory(&none, dir.path(), &["b"]).unwrap();
        NO.check_directory(&none, &new, &["a"]).unwrap();
        let itself = Inputs::new([&dir.path().to_owned()]);
        assert!(YES.check_directory(&itself, &dir.path().join("."), &[]).is_err());
        std::fs::write(dir.path().join("model-1.safetensors"), "a").unwrap();
        let model = Inputs::new([]).and_model(dir.path());
        assert!(YES.check(&model, [dir.path().join("model-1.safetensors").as_path()]).is_err());
        YES.check(&model, [a.as_path()]).unwrap();
    }

    #[test]
    fn two_outputs_in_one_file_and_a_missing_directory_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let (new, again) = (dir.path().join("new"), dir.path().join(".").join("new"));
        assert!(refusal(YES, &[], &[&new, &again]).contains("written twice"));
        assert!(refusal(YES, &[], &[&dir.path().join("none/x")]).contains("none/x"));
        assert!(refusal(YES, &[], &[dir.path()]).contains("is a directory"));
    }

    #[cfg(unix)]
    #[test]
    fn what_holds_nothing_may_be_written_without_force() {
        NO.check(&Inputs::new([]), [Path::new("/dev/null")]).unwrap();
    }
}
