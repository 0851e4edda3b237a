//! Labels that are known by their names: what clients say of them, checked, and the support sets that they and examples make.
//!
//! A label is *declared* by its name, with or without examples: a model that reads names looks for it at once. A *meaning* is the name
//! that the model reads instead of the label's own; `null` switches the name off.

use std::collections::{BTreeMap, BTreeSet};

use fewtag::names::name_words;
use fewtag::{Sentence, Slot, SupportSet, Tag, Tagger};

use crate::config::Limits;
use crate::error::{ApiError, ApiResult, Code};
use crate::request::label;
use crate::store::{Content, Declared, Domain};

/// What labels mean, by label; `None`: the name says nothing.
pub type Meanings = BTreeMap<String, Option<String>>;

/// The longest label or meaning that is taken, in Unicode scalar values.
const MAX_NAME: usize = 200;

/// Checks labels and meanings; a label of several words becomes a slot, one that comes twice is declared once. `inside` names
/// the place of a field in the request.
///
/// # Errors
///
/// [`Code::SupportTooLarge`], [`Code::TextTooLong`], [`Code::InvalidRequest`].
pub fn declared(
    labels: &[String],
    meanings: &Meanings,
    limits: &Limits,
    inside: impl Fn(&str) -> String,
) -> ApiResult<Declared> {
    check_number(labels.len().max(meanings.len()), limits).map_err(|it| it.at(inside("labels")))?;
    let mut found = Declared::default();
    for (at, name) in labels.iter().enumerate() {
        let label = slot(name).map_err(|it| it.at(format!("{}[{at}]", inside("labels"))))?;
        if !found.labels.contains(&label) {
            found.labels.push(label);
        }
    }
    for (name, meaning) in meanings {
        let place = |it: ApiError| it.at(format!("{}.{name}", inside("meanings")));
        let meaning = meaning.as_deref().map(str::trim).filter(|meaning| !meaning.is_empty());
        meaning.map_or(Ok(()), check_name).map_err(place)?;
        found.meanings.insert(slot(name).map_err(place)?, meaning.map(str::to_owned));
    }
    Ok(found)
}

/// Refuses more labels than a domain may have examples.
///
/// # Errors
///
/// [`Code::SupportTooLarge`].
pub fn check_number(n: usize, limits: &Limits) -> ApiResult<()> {
    if n <= limits.support {
        return Ok(());
    }
    let message = format!("{n} labels; at most {} are taken", limits.support);
    Err(ApiError::new(Code::SupportTooLarge, message))
}

fn slot(name: &str) -> ApiResult<String> {
    check_name(name)?;
    let slot = Slot::of_words(name);
    let slot = slot.map_err(|_| ApiError::new(Code::InvalidRequest, "a label has a name"))?;
    Ok(slot.as_str().to_owned())
}

fn check_name(name: &str) -> ApiResult<()> {
    if name.contains('\0') {
        return Err(ApiError::new(Code::InvalidRequest, "a name holds no NUL character"));
    }
    let n = name.chars().count();
    if n > MAX_NAME {
        let message = format!("the name has {n} characters, at most {MAX_NAME} are taken");
        return Err(ApiError::new(Code::TextTooLong, message));
    }
    Ok(())
}

/// Refuses the meaning of a label that a domain neither declares nor shows.
///
/// # Errors
///
/// [`Code::UnknownLabel`].
pub fn check_meanings(content: &Content) -> ApiResult<()> {
    let spans = content.examples.iter().flat_map(|example| &example.spans);
    let known: BTreeSet<&str> = spans.map(|span| span.label.as_str()).collect();
    let is_known = |label: &str| {
        known.contains(label) || content.declared.labels.iter().any(|name| name == label)
    };
    unknown(content.declared.meanings.keys().map(String::as_str), is_known)
}

fn unknown<'a>(
    labels: impl IntoIterator<Item = &'a str>,
    is_known: impl Fn(&str) -> bool,
) -> ApiResult<()> {
    match labels.into_iter().find(|label| !is_known(label)) {
        None => Ok(()),
        Some(label) => {
            let message = format!("there is no label `{label}` that could mean something");
            Err(ApiError::new(Code::UnknownLabel, message).at("meanings"))
        }
    }
}

/// The support set of a request.
///
/// # Errors
///
/// [`Code::NothingToLearn`] without any label, [`Code::UnknownLabel`] if another label is given a meaning.
pub fn of_request(sentences: Vec<Sentence>, declared: &Declared) -> ApiResult<SupportSet> {
    let set = support(sentences, declared)?;
    let slots = set.tag_set().slots();
    let is_known = |label: &str| slots.iter().any(|slot| slot.as_str() == label);
    unknown(declared.meanings.keys().map(String::as_str), is_known)?;
    Ok(set)
}

/// The support set of a kept domain. A declared label that neither an example nor a name speaks for is not looked for yet.
///
/// # Errors
///
/// [`Code::NothingToLearn`] if there is no label to look for.
pub fn of_domain(tagger: &Tagger, domain: &Domain) -> ApiResult<SupportSet> {
    let sentences = domain.examples.iter().map(|example| label(&example.text, &example.spans));
    let sentences = sentences.collect::<ApiResult<Vec<_>>>()?;
    let says_something = |label: &String| -> ApiResult<bool> {
        let name = match domain.meanings.get(label) {
            Some(None) => return Ok(false),
            Some(Some(meaning)) => meaning,
            None => label,
        };
        let tag = Tag::B(Slot::new(label)?);
        Ok(tagger.uses_label_names() && name_words(&tag, name).is_some())
    };
    let mut declared = Declared { labels: Vec::new(), meanings: domain.meanings.clone() };
    for label in &domain.declared {
        if says_something(label)? {
            declared.labels.push(label.clone());
        }
    }
    support(sentences, &declared)
}

fn support(sentences: Vec<Sentence>, declared: &Declared) -> ApiResult<SupportSet> {
    let slots = declared.labels.iter().map(|label| Slot::new(label));
    let mut set = SupportSet::with_labels(sentences, slots.collect::<fewtag::Result<Vec<_>>>()?)?;
    let known: BTreeSet<Slot> = set.tag_set().slots().into_iter().cloned().collect();
    for (label, meaning) in &declared.meanings {
        let slot = Slot::new(label)?;
        if known.contains(&slot) {
            set = set.named(slot, meaning.clone());
        }
    }
    Ok(set)
}

/// What a support set, such as that of a saved domain, declares besides its examples.
#[must_use]
pub fn of_support(set: &SupportSet) -> Declared {
    let shown = set.shown_slots();
    let slots = set.tag_set().slots().into_iter();
    let given = slots.filter(|slot| !shown.contains(*slot)).map(|slot| slot.as_str().to_owned());
    let meanings = set.names().iter().map(|(slot, name)| (slot.as_str().to_owned(), name.clone()));
    Declared { labels: given.collect(), meanings: meanings.collect() }
}
