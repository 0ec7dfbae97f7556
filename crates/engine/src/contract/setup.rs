//! From nothing to a table with an index.

use super::{Subject, Verdict, failed, skipped};
use crate::{Batch, Control, ErrorKind};
use types::Vectors;

/// Rows that an ordinary batch has; the last one of a load is shorter.
const BATCH: usize = 64;

pub(super) fn identity(subject: &Subject<'_>) -> Verdict {
    let identity = subject.engine.identity()?;
    if identity.version.is_empty() { failed("the version is empty") } else { Ok(()) }
}

pub(super) fn create(subject: &Subject<'_>) -> Verdict {
    subject.engine.create(&subject.table(subject.data.len()))?;
    match subject.engine.row_count()? {
        0 => Ok(()),
        rows => failed(format!("{rows} rows in a new table")),
    }
}

pub(super) fn insert_dimension(subject: &Subject<'_>) -> Verdict {
    let (dim, element) = (subject.options.dim * 2, subject.data.vectors.element());
    let Ok(vectors) = Vectors::from_bytes(vec![1; element.row_bytes(dim)], 1, dim, element) else {
        return skipped("the suite's row could not be made");
    };
    let columns = subject.data.columns.slice(0..1);
    let mut session = subject.engine.connect()?;
    match session.insert(&Batch { keys: 0..1, vectors: &vectors, columns: Some(&columns) }) {
        Ok(_) => {
            failed(format!("a row of {dim} dimensions was accepted, the table has {}", subject.options.dim))
        }
        Err(e) if e.kind() == ErrorKind::Refused => Ok(()),
        Err(e) => failed(format!("the error is not of the kind refused: {e} ({})", e.kind().name())),
    }
}

pub(super) fn create_drops(subject: &Subject<'_>) -> Verdict {
    subject.engine.create(&subject.table(subject.data.len()))?;
    subject.insert(&mut *subject.engine.connect()?, 0..3)?;
    create(subject)
}

pub(super) fn load(subject: &Subject<'_>) -> Verdict {
    let mut session = subject.engine.connect()?;
    let rows = subject.data.len();
    subject.insert(&mut *session, 0..1)?;
    let mut start = 1;
    while start < rows {
        let end = (start + BATCH).min(rows);
        subject.insert(&mut *session, start..end)?;
        start = end;
    }
    subject.engine.finish_load()?;
    Ok(())
}

pub(super) fn count(subject: &Subject<'_>) -> Verdict {
    // No polling: after finish_load what was accepted is in the table.
    match (subject.engine.row_count()?, subject.data.len()) {
        (counted, rows) if counted == rows as u64 => Ok(()),
        (counted, rows) => failed(format!("{counted} of {rows} rows")),
    }
}

pub(super) fn build(subject: &Subject<'_>) -> Verdict {
    Ok(subject.engine.build(&subject.index, &Control::default())?)
}

pub(super) fn readiness(subject: &Subject<'_>) -> Verdict {
    let mut last = None;
    let ready = subject.wait_until(|| {
        let readiness = subject.engine.readiness()?;
        last = readiness.indexed;
        Ok(readiness.ready)
    })?;
    let rows = subject.data.len() as u64;
    match last {
        _ if !ready => failed(format!("not ready after {} polls", subject.options.polls)),
        Some(indexed) if indexed != rows => {
            failed(format!("ready with {indexed} of {rows} rows in the index"))
        }
        _ => Ok(()),
    }
}

pub(super) fn index_read_back(subject: &Subject<'_>) -> Verdict {
    let Some(info) = subject.engine.index_info()? else { return failed("the engine knows of no index") };
    let asked = &subject.index;
    if info.kind != asked.kind {
        return failed(format!("asked for {}, read back {}", asked.kind, info.kind));
    }
    for (name, value) in &info.params {
        if let Some(wanted) = asked.params.get(name).filter(|wanted| *wanted != value) {
            return failed(format!("asked for {name} = {wanted}, read back {value}"));
        }
    }
    let rows = subject.data.len() as u64;
    match info.indexed {
        Some(indexed) if indexed != rows => failed(format!("{indexed} of {rows} rows in the index")),
        _ => Ok(()),
    }
}

pub(super) fn sizes(subject: &Subject<'_>) -> Verdict {
    let sizes = subject.engine.sizes()?;
    match sizes.table.or(sizes.index) {
        None => skipped("the engine tells no size"),
        // The index of an exact scan may be nothing; the rows are not.
        Some(_) if sizes.table == Some(0) => failed("the table has 0 bytes"),
        Some(_) => Ok(()),
    }
}
