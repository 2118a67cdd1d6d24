//! Comma-separated values (RFC 4180) of the logs of a grant (rule 37).

use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, header};

/// Whether the client prefers CSV to JSON: it names `text/csv`, and with no lower quality than JSON.
pub(crate) fn is_requested(headers: &HeaderMap) -> bool {
    let ranges = headers.get_all(header::ACCEPT).iter();
    let ranges: Vec<&str> = ranges
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .collect();
    let quality = |name: &str| {
        let qualities = ranges.iter().filter_map(|range| {
            let mut parts = range.split(';').map(str::trim);
            parts.next().filter(|media| media.eq_ignore_ascii_case(name))?;
            let quality = parts.find_map(|part| part.strip_prefix("q="));
            Some(quality.map_or(1000, thousandths))
        });
        qualities.max().unwrap_or(0)
    };
    let csv = quality("text/csv");
    csv > 0 && csv >= quality("application/json")
}

/// A quality of RFC 9110 section 12.4.2 in thousandths; an invalid one is 0.
fn thousandths(text: &str) -> u32 {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_valid = matches!(whole, "0" | "1") && fraction.len() <= 3 && fraction.bytes().all(|b| b.is_ascii_digit());
    let digits = format!("{whole}{fraction:0<3}");
    digits
        .parse()
        .ok()
        .filter(|value| is_valid && *value <= 1000)
        .unwrap_or(0)
}

/// A table with a header line.
#[derive(Debug)]
pub(crate) struct Csv(String);

impl Csv {
    /// A table with these columns.
    pub(crate) fn new(columns: &[&str]) -> Self {
        let mut table = Self(String::new());
        table.push(columns.iter().copied());
        table
    }

    /// Adds a line.
    pub(crate) fn push<'v>(&mut self, values: impl IntoIterator<Item = &'v str>) {
        for (index, value) in values.into_iter().enumerate() {
            if index > 0 {
                self.0.push(',');
            }
            self.push_value(value);
        }
        self.0.push_str("\r\n");
    }

    /// Spreadsheets execute cells that begin like a formula, so such a value begins with an apostrophe.
    fn push_value(&mut self, value: &str) {
        let is_formula = value.starts_with(['=', '+', '-', '@', '\t', '\r']);
        let needs_quotes = value.contains([',', '"', '\r', '\n']);
        if !needs_quotes {
            self.0.push_str(if is_formula { "'" } else { "" });
            self.0.push_str(value);
            return;
        }
        self.0.push_str(if is_formula { "\"'" } else { "\"" });
        self.0.push_str(&value.replace('"', "\"\""));
        self.0.push('"');
    }
}

impl IntoResponse for Csv {
    fn into_response(self) -> Response {
        const CSV: HeaderValue = HeaderValue::from_static("text/csv; charset=utf-8; header=present");
        ([(header::CONTENT_TYPE, CSV)], self.0).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ds37_values_are_quoted_and_are_no_formulas() {
        let mut table = Csv::new(&["method", "status_code"]);
        table.push(["eth_call", "200"]);
        table.push(["a,\"b\"\n", "=1+1"]);
        table.push(["@x,y", "-1"]);
        assert_eq!(
            table.0,
            "method,status_code\r\neth_call,200\r\n\"a,\"\"b\"\"\n\",'=1+1\r\n\"'@x,y\",'-1\r\n"
        );
    }

    #[test]
    fn ds37_csv_is_sent_to_clients_that_prefer_it() {
        for (accept, expected) in [
            ("text/csv", true),
            ("TEXT/CSV; charset=utf-8", true),
            ("text/csv, application/json", true),
            ("text/csv;q=0.5, application/json", false),
            ("text/csv;q=0.5, application/json;q=0.4", true),
            ("text/csv;q=0", false),
            ("text/csv;q=2", false),
            ("*/*", false),
            ("text/*", false),
            ("", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, accept.parse().unwrap());
            assert_eq!(is_requested(&headers), expected, "{accept}");
        }
    }
}
