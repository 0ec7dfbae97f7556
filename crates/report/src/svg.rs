//! Draws a chart as SVG. The same drawing stands in the page and in a file of its own.
//!
//! Series differ by marker, dash and colour, so that the chart reads without colour. Nothing is cut
//! off: the recall axis starts at or below the lowest point and is stretched towards 1.

use crate::chart::{ChartData, ChartPoint, ChartSeries};
use std::fmt::Write;

/// Size of a drawing in SVG units, which are pixels at 100 %.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    pub(crate) width: f64,
    pub(crate) height: f64,
}

/// For pages and files.
pub(crate) const WIDE: Size = Size { width: 920.0, height: 520.0 };
/// For a narrow window.
pub(crate) const NARROW: Size = Size { width: 360.0, height: 380.0 };

/// Colours, dashes and markers; twelve colours and eight markers give 24 different series.
const DASHES: [&str; 4] = ["", "7 3", "2 3", "9 3 2 3"];
/// Number of colours in the style sheet.
const COLOURS: usize = 8;

const STYLE: &str = include_str!("templates/chart.css");

/// The two axes: where a value lies.
struct Axes {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    /// Lowest recall shown.
    from: f64,
    /// Logarithms (base 10) of the throughputs at bottom and top.
    low: f64,
    high: f64,
}

/// How much the recall axis is stretched: the positions of 0.9, 0.99 and 0.999 are about equally far apart,
/// and 1 lies at a finite place.
fn stretch(recall: f64) -> f64 {
    -(1.0 - recall.clamp(0.0, 1.0) + 0.001).log10()
}

impl Axes {
    fn new(data: &ChartData, size: Size, legend: f64) -> Self {
        let points = || data.series.iter().flat_map(|s| &s.points);
        let lowest = points().map(|p| p.recall).fold(1.0, f64::min);
        let from = [0.98, 0.95, 0.9, 0.8, 0.6, 0.4, 0.2].into_iter().find(|f| *f < lowest).unwrap_or(0.0);
        let lows = points().map(|p| p.range.map_or(p.throughput, |r| r.0.min(p.throughput)));
        let highs = points().map(|p| p.range.map_or(p.throughput, |r| r.1.max(p.throughput)));
        let low = lows.filter(|v| *v > 0.0).fold(f64::INFINITY, f64::min).log10();
        let high = highs.fold(f64::MIN_POSITIVE, f64::max).log10();
        // A margin, and at least half a decade, so that noise does not fill the chart.
        let margin = ((high - low) * 0.08).max(0.05);
        let short = ((0.5 - (high - low)) / 2.0).max(0.0);
        Axes {
            left: 64.0,
            right: size.width - 22.0,
            top: 14.0,
            bottom: size.height - 46.0 - legend,
            from,
            low: low - margin - short,
            high: high + margin + short,
        }
    }

    fn x(&self, recall: f64) -> f64 {
        let (from, to) = (stretch(self.from), stretch(1.0));
        self.left + (stretch(recall) - from) / (to - from) * (self.right - self.left)
    }

    fn y(&self, throughput: f64) -> f64 {
        let at = (throughput.max(f64::MIN_POSITIVE).log10() - self.low) / (self.high - self.low);
        self.bottom - at * (self.bottom - self.top)
    }

    /// Recall ticks, left out where they would touch.
    fn x_ticks(&self) -> Vec<f64> {
        const ALL: [f64; 14] = [0.0, 0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 1.0];
        // Those that readers look for come first.
        const FIRST: [f64; 6] = [1.0, 0.9, 0.95, 0.99, 0.999, 0.8];
        let mut ticks: Vec<f64> = Vec::new();
        for tick in FIRST.into_iter().chain(ALL) {
            let free = ticks.iter().all(|t| (self.x(*t) - self.x(tick)).abs() > 38.0);
            if tick >= self.from && free {
                ticks.push(tick);
            }
        }
        ticks
    }

    /// Throughput ticks: 1, 2 and 5 times powers of ten, or powers of ten only where that is too close.
    fn y_ticks(&self) -> Vec<f64> {
        let decade = (self.bottom - self.top) / (self.high - self.low);
        let steps: &[f64] = if decade < 90.0 { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let (first, last) = (self.low.floor() as i32, self.high.ceil() as i32);
        (first..=last)
            .flat_map(|power| steps.iter().map(move |step| step * 10f64.powi(power)))
            .filter(|v| (self.low..=self.high).contains(&v.log10()))
            .collect()
    }
}

/// The chart as an SVG element. `id` makes its ids unlike those of other charts on the page.
pub(crate) fn draw(data: &ChartData, size: Size, id: &str) -> String {
    let legend_rows = legend_layout(data, size);
    let legend = 20.0 * legend_rows.iter().map(|(_, y, _)| y + 1.0).fold(0.0, f64::max);
    let size = Size { height: size.height + legend, ..size };
    let axes = Axes::new(data, size, legend);
    let mut out = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" class="chart" viewBox="0 0 {w} {h}" width="{w}" height="{h}" role="group" aria-labelledby="{id}-title"><title id="{id}-title">{title}</title><style>{STYLE}</style><rect class="paper" width="{w}" height="{h}"/>"#,
        w = size.width,
        h = size.height,
        title = escape(&data.title),
    );
    draw_axes(&mut out, data, &axes);
    for (at, series) in data.series.iter().enumerate() {
        draw_series(&mut out, series, at, &axes, id);
    }
    for (at, row, x) in legend_rows {
        let y = size.height - legend + 20.0 * row + 4.0;
        let label = shorten(&data.series[at].label, ((size.width - x - 30.0) / 7.2) as usize);
        let _ = write!(
            out,
            r#"<g class="s{c}"><path class="line" stroke-dasharray="{dash}" d="M{x} {y}h26"/>{marker}<text x="{tx}" y="{ty}">{label}</text></g>"#,
            c = at % COLOURS,
            dash = DASHES[(at / COLOURS) % DASHES.len()],
            marker = marker(at, x + 13.0, y, 5.0),
            tx = x + 32.0,
            ty = y + 4.0,
            label = escape(&label),
        );
    }
    out + "</svg>"
}

/// (series, row, x) of each legend entry.
fn legend_layout(data: &ChartData, size: Size) -> Vec<(usize, f64, f64)> {
    let (mut row, mut x) = (0.0, 16.0);
    let mut all = Vec::new();
    for (at, series) in data.series.iter().enumerate() {
        let width = 50.0 + 6.8 * series.label.chars().count() as f64;
        if x > 16.0 && x + width > size.width - 8.0 {
            row += 1.0;
            x = 16.0;
        }
        all.push((at, row, x));
        x += width;
    }
    all
}

fn draw_axes(out: &mut String, data: &ChartData, axes: &Axes) {
    let Axes { left, right, top, bottom, .. } = *axes;
    for tick in axes.y_ticks() {
        let y = axes.y(tick);
        let _ = write!(
            out,
            r#"<path class="grid" d="M{left} {y:.1}H{right}"/><text class="tick" x="{tx}" y="{ty:.1}" text-anchor="end">{label}</text>"#,
            tx = left - 7.0,
            ty = y + 4.0,
            label = tick_label(tick),
        );
    }
    for tick in axes.x_ticks() {
        let x = axes.x(tick);
        let _ = write!(
            out,
            r#"<path class="grid" d="M{x:.1} {top}V{bottom}"/><text class="tick" x="{x:.1}" y="{ty}" text-anchor="middle">{tick}</text>"#,
            ty = bottom + 17.0,
        );
    }
    let wide = right - left > 500.0;
    let x_label =
        if wide { data.x_label.as_str() } else { data.x_label.split(" (").next().unwrap_or_default() };
    let _ = write!(
        out,
        r#"<path class="axis" d="M{left} {top}V{bottom}H{right}"/><text class="label" x="{mid}" y="{y}" text-anchor="middle">{x_label}</text><text class="label" transform="translate(14 {vmid}) rotate(-90)" text-anchor="middle">{y_label}</text>"#,
        mid = (left + right) / 2.0,
        y = bottom + 36.0,
        x_label = escape(x_label),
        vmid = (top + bottom) / 2.0,
        y_label = escape(&data.y_label),
    );
}

fn tick_label(value: f64) -> String {
    if value >= 1e6 {
        format!("{}M", value / 1e6)
    } else if value >= 1e3 {
        format!("{}k", value / 1e3)
    } else if value >= 1.0 {
        format!("{value:.0}")
    } else {
        format!("{value:.3}").trim_end_matches('0').to_owned()
    }
}

fn draw_series(out: &mut String, series: &ChartSeries, at: usize, axes: &Axes, id: &str) {
    let _ = write!(out, r#"<g class="s{}">"#, at % COLOURS);
    let mut on: Vec<&ChartPoint> = series.points.iter().filter(|p| p.frontier).collect();
    on.sort_by(|a, b| a.recall.total_cmp(&b.recall));
    let path: Vec<String> =
        on.iter().map(|p| format!("{:.1} {:.1}", axes.x(p.recall), axes.y(p.throughput))).collect();
    if path.len() > 1 {
        let dash = DASHES[(at / COLOURS) % DASHES.len()];
        let _ = write!(out, r#"<path class="line" stroke-dasharray="{dash}" d="M{}"/>"#, path.join("L"));
    }
    // Small ones first, so that the frontier lies on top.
    let mut order: Vec<usize> = (0..series.points.len()).collect();
    order.sort_by_key(|&p| series.points[p].frontier);
    for index in order {
        let point = &series.points[index];
        let (x, y) = (axes.x(point.recall), axes.y(point.throughput));
        if let Some((low, high)) = point.range {
            let _ =
                write!(out, r#"<path class="range" d="M{x:.1} {:.1}V{:.1}"/>"#, axes.y(low), axes.y(high));
        }
        let details: Vec<String> = point.details.iter().map(|(k, v)| format!("{k}: {v}")).collect();
        let class = if point.client_limited { "pt limited" } else { "pt" };
        let _ = write!(
            out,
            r#"<g class="{class}" tabindex="0" role="img" data-series="{at}" data-point="{index}" aria-labelledby="{id}-{at}-{index}"><title id="{id}-{at}-{index}">{text}</title><circle class="hit" cx="{x:.1}" cy="{y:.1}" r="11"/>{marker}</g>"#,
            text = escape(&details.join("\n")),
            marker = marker(at, x, y, if point.frontier { 6.0 } else { 3.2 }),
        );
    }
    out.push_str("</g>");
}

/// One of eight shapes about (x, y), `r` from middle to edge.
fn marker(series: usize, x: f64, y: f64, r: f64) -> String {
    let polygon = |points: &[(f64, f64)]| {
        let list: Vec<String> =
            points.iter().map(|(px, py)| format!("{:.1},{:.1}", x + px * r, y + py * r)).collect();
        format!(r#"<polygon class="mark" points="{}"/>"#, list.join(" "))
    };
    match series % 8 {
        0 => format!(r#"<circle class="mark" cx="{x:.1}" cy="{y:.1}" r="{r}"/>"#),
        1 => polygon(&[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]),
        2 => polygon(&[(0.0, -1.2), (1.1, 0.9), (-1.1, 0.9)]),
        3 => polygon(&[(0.0, -1.3), (1.1, 0.0), (0.0, 1.3), (-1.1, 0.0)]),
        4 => polygon(&[(0.0, 1.2), (1.1, -0.9), (-1.1, -0.9)]),
        5 => {
            let (a, b) = (0.38, 1.15);
            polygon(&[
                (-a, -b),
                (a, -b),
                (a, -a),
                (b, -a),
                (b, a),
                (a, a),
                (a, b),
                (-a, b),
                (-a, a),
                (-b, a),
                (-b, -a),
                (-a, -a),
            ])
        }
        6 => polygon(&[(-0.5, -1.1), (0.5, -1.1), (1.1, 0.0), (0.5, 1.1), (-0.5, 1.1), (-1.1, 0.0)]),
        _ => {
            let star: Vec<(f64, f64)> = (0..10)
                .map(|i| {
                    let (angle, r) =
                        (f64::from(i) * std::f64::consts::PI / 5.0, if i % 2 == 0 { 1.35 } else { 0.6 });
                    (angle.sin() * r, -angle.cos() * r)
                })
                .collect();
            polygon(&star)
        }
    }
}

/// At most `most` characters, the end left out.
fn shorten(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(1)).collect::<String>() + "…"
}

/// Text safe between tags and in attributes; control characters, which XML forbids, become spaces.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' => out.push('\n'),
            c if c.is_control() || matches!(c, '\u{FFFE}' | '\u{FFFF}') => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
#[path = "svg_tests.rs"]
mod tests;
