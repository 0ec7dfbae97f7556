//! The only place that writes to the terminal: data to standard output, talk to standard error.

use crate::args::OutputArgs;
use serde::Serialize;
use std::io::{self, IsTerminal, Write};

/// Where text goes, and how.
pub(crate) struct Printer {
    json: bool,
    quiet: bool,
    colour: bool,
}

impl Printer {
    /// By the options and the terminal.
    pub(crate) fn new(args: &OutputArgs) -> Self {
        let colour = io::stderr().is_terminal()
            && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
            && std::env::var_os("TERM").is_none_or(|v| v != "dumb");
        Printer { json: args.json, quiet: args.quiet, colour }
    }

    /// Whether the user asked for JSON.
    pub(crate) fn wants_json(&self) -> bool {
        self.json
    }

    /// Whether progress bars may be drawn.
    pub(crate) fn draws(&self) -> bool {
        !self.quiet && io::stderr().is_terminal()
    }

    /// Whether to say how far a long step is, drawn or in lines.
    pub(crate) fn talks(&self) -> bool {
        !self.quiet
    }

    /// Columns of the terminal that data is shown in; 100 where it is none.
    pub(crate) fn width(&self) -> usize {
        if !io::stdout().is_terminal() {
            return 100;
        }
        std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok()).unwrap_or(100)
    }

    /// Data for people.
    pub(crate) fn data(&self, text: &str) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        if !text.ends_with('\n') {
            out.write_all(b"\n")?;
        }
        out.flush()
    }

    /// Data for programs.
    pub(crate) fn json(&self, value: &impl Serialize) -> anyhow::Result<()> {
        Ok(self.data(&serde_json::to_string_pretty(value)?)?)
    }

    /// The same data as text or as JSON, by the user's wish.
    pub(crate) fn show(&self, value: &impl Serialize, text: impl FnOnce() -> String) -> anyhow::Result<()> {
        if self.json { self.json(value) } else { Ok(self.data(&text())?) }
    }

    /// Something the user should know.
    pub(crate) fn note(&self, text: &str) {
        if !self.quiet {
            self.talk("note", "36", text);
        }
    }

    /// Something the user must know.
    pub(crate) fn warning(&self, text: &str) {
        self.talk("warning", "33", text);
    }

    /// Why a command ended.
    pub(crate) fn error(&self, text: &str) {
        self.talk("error", "31", text);
    }

    /// A line of talk without a label.
    pub(crate) fn line(&self, text: &str) {
        if !self.quiet {
            // Standard error may be closed; a run must not end for it.
            let _closed = writeln!(io::stderr(), "{text}");
        }
    }

    fn talk(&self, label: &str, colour: &str, text: &str) {
        let label = if self.colour { format!("\x1b[1;{colour}m{label}\x1b[0m") } else { label.to_owned() };
        // As above.
        let _closed = writeln!(io::stderr(), "{label}: {text}");
    }
}
