//! `--param name=value`.

use crate::exit::usage_error;
use engine::{Param, Params};

/// Reads `m=16`, `quantization=i8`, `flag=true`.
pub(crate) fn parse(given: &[String]) -> anyhow::Result<Params> {
    let mut params = Params::new();
    for text in given {
        let Some((name, value)) = text.split_once('=') else {
            return Err(usage_error(format!("--param {text:?} has no value; write it like m=16")));
        };
        let value = value.trim();
        let value = value
            .parse::<i64>()
            .map(Param::Int)
            .or_else(|_| value.parse::<bool>().map(Param::Bool))
            .or_else(|_| value.parse::<f64>().map(Param::Float))
            .unwrap_or_else(|_| Param::Text(value.to_owned()));
        params.insert(name.trim().to_owned(), value);
    }
    Ok(params)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_take_the_type_that_fits() {
        let params = parse(&["m=16".into(), "q=i8".into(), "on=true".into(), "x=0.5".into()]).unwrap();
        assert_eq!(params["m"], Param::Int(16));
        assert_eq!(params["q"], Param::Text("i8".into()));
        assert_eq!(params["on"], Param::Bool(true));
        assert_eq!(params["x"], Param::Float(0.5));
        assert!(parse(&["m".into()]).unwrap_err().to_string().contains("m=16"));
    }
}
