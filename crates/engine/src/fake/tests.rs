//! Each scripted behaviour does what its name says.
