//! How figures are written for people and read from them.

use std::time::Duration;

/// Bytes with a binary unit: `4.0 KiB`.
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1023.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{value:.1} {}", UNITS[unit]) }
}

/// A duration in seconds with the unit that suits it: `12 µs`, `3.4 ms`, `1.20 s`, `4 min 05 s`, `3 h 02 min`.
pub fn seconds(seconds: f64) -> String {
    if !seconds.is_finite() {
        return "-".into();
    }
    if seconds < 0.999_5e-6 {
        format!("{:.0} ns", seconds * 1e9)
    } else if seconds < 0.999_5e-3 {
        format!("{} µs", significant(seconds * 1e6))
    } else if seconds < 0.999_5 {
        format!("{} ms", significant(seconds * 1e3))
    } else if seconds < 119.5 {
        format!("{} s", significant(seconds))
    } else if seconds < 7170.0 {
        let whole = seconds.round() as u64;
        format!("{} min {:02} s", whole / 60, whole % 60)
    } else {
        let minutes = (seconds / 60.0).round() as u64;
        format!("{} h {:02} min", minutes / 60, minutes % 60)
    }
}

/// A [`Duration`] as [`seconds`] writes it.
pub fn duration(duration: Duration) -> String {
    seconds(duration.as_secs_f64())
}

/// A count with thousands apart: `1,234,567`.
pub fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A rate per second: three significant digits below 1,000, else whole with thousands apart.
pub fn rate(per_second: f64) -> String {
    if !per_second.is_finite() {
        "-".into()
    } else if per_second < 999.5 {
        significant(per_second)
    } else {
        count(per_second.round() as u64)
    }
}

/// Three significant digits.
fn significant(value: f64) -> String {
    if value >= 99.95 {
        format!("{value:.0}")
    } else if value >= 9.995 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

/// Reads `512MiB`, `4 GB`, `1g`, `100` (bytes). KB, MB … are powers of 1,000; K, KiB … of 1,024.
///
/// # Errors
/// A sentence with the accepted form.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let fault = || format!("{text:?} is no size; write it like 512MiB, 4GB or 1000000");
    let plain = text.trim();
    let split = plain.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(plain.len());
    let number: f64 = plain[..split].parse().ok().ok_or_else(fault)?;
    let unit: f64 = match plain[split..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kib" => 1024.0,
        "m" | "mib" => 1024.0 * 1024.0,
        "g" | "gib" => 1024.0 * 1024.0 * 1024.0,
        "t" | "tib" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        "kb" => 1e3,
        "mb" => 1e6,
        "gb" => 1e9,
        "tb" => 1e12,
        _ => return Err(fault()),
    };
    let bytes = number * unit;
    if bytes.is_finite() && bytes < u64::MAX as f64 { Ok(bytes as u64) } else { Err(fault()) }
}

/// Reads `90s`, `5m`, `1h 30m`, `250ms`.
///
/// # Errors
/// A sentence with the accepted form.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text.trim())
        .map_err(|e| format!("{text:?} is no duration ({e}); write it like 90s, 5m or 1h 30m"))
}

/// A duration as [`parse_duration`] reads it, without loss: `1h 30m`.
pub fn format_duration(duration: Duration) -> String {
    humantime::format_duration(duration).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_written_and_read() {
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1024 * 1024 - 1), "1.0 MiB");
        assert_eq!(parse_bytes("1.5 GiB"), Ok(1_610_612_736));
        assert_eq!(parse_bytes("2kb"), Ok(2000));
        for bad in ["", "x", "-1", "1.2.3", "4 parsecs", "99999999999999999999999t"] {
            assert!(parse_bytes(bad).unwrap_err().contains("512MiB"), "{bad}");
        }
    }

    #[test]
    fn durations_choose_their_unit() {
        for (value, text) in [
            (0.000_012, "12.0 µs"),
            (0.003_4, "3.40 ms"),
            (0.999_9, "1.00 s"),
            (59.99, "60.0 s"),
            (245.0, "4 min 05 s"),
            (10_921.0, "3 h 02 min"),
        ] {
            assert_eq!(seconds(value), text);
        }
        assert_eq!(rate(1_234_567.4), "1,234,567");
        assert_eq!(rate(12.34), "12.3");
        assert!(parse_duration("five").unwrap_err().contains("90s"));
    }
}
