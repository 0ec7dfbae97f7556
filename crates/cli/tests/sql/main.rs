//! The SQL engines through the real binary, against real servers: PostgreSQL with pgvector and MariaDB,
//! named by `ANNVIL_POSTGRES` and `ANNVIL_MARIADBD` (`cargo xtask servers`).
//!
//! One PostgreSQL and one MariaDB serve all tests that only talk to a server; each test has a database of
//! its own there. A test that kills, fills or misconfigures a server starts its own, or lets annvil do it.

#[path = "../support/cases.rs"]
mod cases;
#[path = "../support/mod.rs"]
mod support;

mod access;
mod certificates;
mod contract;
mod disk;
mod filters;
mod killed;
mod loading;
mod plans;
mod readme;
mod run;
mod secrets;
mod servers;
mod sizes;
mod tls;
mod tls_proxy;
