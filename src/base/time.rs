//! Points in time and durations as people write and read them. Callers pass the time in, so that the pure layers
//! need no clock.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use chrono::{DateTime, NaiveDate, NaiveTime, SecondsFormat, Utc};
use serde::{Deserialize, Serialize};

/// A moment in UTC with millisecond precision, written as RFC 3339 in every file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Timestamp(DateTime<Utc>);

impl Timestamp {
    /// Makes a timestamp from milliseconds since the Unix epoch.
    pub fn from_millis(millis: i64) -> Self {
        Self(DateTime::from_timestamp_millis(millis).unwrap_or_default())
    }

    /// Returns the day in UTC, `2026-11-20`.
    pub fn day(self) -> String {
        self.0.format("%Y-%m-%d").to_string()
    }

    /// Returns milliseconds since the Unix epoch.
    pub fn as_millis(self) -> i64 {
        self.0.timestamp_millis()
    }

    /// Returns the time since the Unix epoch, zero before it.
    pub fn since_epoch(self) -> Duration {
        Duration::from_millis(self.as_millis().max(0).unsigned_abs())
    }

    /// Returns the moment so much later.
    #[must_use]
    pub fn after(self, wait: Duration) -> Self {
        let wait = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
        Self(
            DateTime::from_timestamp_millis(self.as_millis().saturating_add(wait))
                .unwrap_or(DateTime::<Utc>::MAX_UTC),
        )
    }

    /// Returns the moment so much earlier.
    #[must_use]
    pub fn before(self, wait: Duration) -> Self {
        let wait = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
        Self(
            DateTime::from_timestamp_millis(self.as_millis().saturating_sub(wait))
                .unwrap_or(DateTime::<Utc>::MIN_UTC),
        )
    }

    /// Returns the time between `earlier` and this moment, zero when the clock went backwards.
    pub fn since(self, earlier: Self) -> Duration {
        (self.0 - earlier.0).to_std().unwrap_or(Duration::ZERO)
    }

    /// Returns the form for lists that people read: `2026-11-20 23:48`, in UTC.
    pub fn minute(self) -> String {
        self.0.format("%Y-%m-%d %H:%M").to_string()
    }

    /// Returns the form used in instance ids: `20261120T234847`.
    pub fn compact(self) -> String {
        self.0.format("%Y%m%dT%H%M%S").to_string()
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.to_rfc3339_opts(SecondsFormat::Millis, true))
    }
}

impl TryFrom<String> for Timestamp {
    type Error = chrono::ParseError;
    fn try_from(text: String) -> Result<Self, chrono::ParseError> {
        Ok(Self(DateTime::parse_from_rfc3339(&text)?.with_timezone(&Utc)))
    }
}

impl From<Timestamp> for String {
    fn from(timestamp: Timestamp) -> Self {
        timestamp.to_string()
    }
}

/// Why a text is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// Neither a number of seconds nor a form such as `5m`.
    #[error("`{0}` is not a duration; write seconds, or a number with a unit: `90s`, `30m`, `1h30m`")]
    Unreadable(String),
    /// Zero or less where something has to pass.
    #[error("a duration must be more than zero")]
    NotPositive,
    /// More than [`MAX_DURATION`].
    #[error("a duration can be at most ten years")]
    TooLong,
}

/// Longer waits are typing mistakes, and deadlines beyond it overflow.
pub const MAX_DURATION: Duration = Duration::from_hours(10 * 365 * 24);

/// Reads a number of seconds.
pub fn duration_from_secs(seconds: f64) -> Result<Duration, DurationError> {
    if seconds.is_nan() || seconds < 0.0 {
        return Err(DurationError::NotPositive);
    }
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) if duration <= MAX_DURATION => Ok(duration),
        _ => Err(DurationError::TooLong),
    }
}

/// Reads a number of seconds (`90`, `0.5`) or a human form (`5m`, `1h30m`, `250ms`).
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    let text = text.trim();
    // Numbers first: `humantime` wants a unit behind each.
    if let Ok(seconds) = text.parse::<f64>() {
        return duration_from_secs(seconds);
    }
    match humantime::parse_duration(text) {
        Ok(duration) if duration <= MAX_DURATION => Ok(duration),
        Ok(_) => Err(DurationError::TooLong),
        Err(_) => Err(DurationError::Unreadable(text.to_owned())),
    }
}

/// The beginning of a span that reaches to now, as people write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// So long ago: `7d`.
    Ago(Duration),
    /// At this moment: `2026-11-20`, which begins at midnight in UTC, or `2026-11-20T18:00:00Z`.
    At(Timestamp),
}

impl Since {
    /// Returns the moment.
    pub fn from(self, now: Timestamp) -> Timestamp {
        match self {
            // At most ten years, as `parse_duration` allows, so the difference is always a date.
            Self::Ago(duration) => Timestamp(now.0 - duration),
            Self::At(moment) => moment,
        }
    }
}

/// A text that names neither a duration nor a date.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SinceError {
    /// It begins like neither.
    #[error("write a duration such as `7d`, or a date such as `2026-11-20`")]
    Unreadable,
    /// It is a duration that cannot be.
    #[error(transparent)]
    Duration(DurationError),
}

impl FromStr for Since {
    type Err = SinceError;

    fn from_str(text: &str) -> Result<Self, SinceError> {
        let text = text.trim();
        if let Ok(date) = text.parse::<NaiveDate>() {
            return Ok(Self::At(Timestamp(date.and_time(NaiveTime::MIN).and_utc())));
        }
        if let Ok(moment) = Timestamp::try_from(text.to_owned()) {
            return Ok(Self::At(moment));
        }
        match parse_duration(text) {
            Ok(duration) => Ok(Self::Ago(duration)),
            Err(DurationError::Unreadable(_)) => Err(SinceError::Unreadable),
            Err(error) => Err(SinceError::Duration(error)),
        }
    }
}

/// Writes a duration for people: `340ms`, `2.3s`, `2m 34s`, `1h 4m`.
pub fn human(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0 => format!("{}ms", duration.as_millis()),
        // Cut and not rounded, so that no duration reads as 60.0s.
        1..60 => format!("{seconds}.{}s", duration.subsec_millis() / 100),
        60..3600 => format!("{}m {}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h {}m", seconds / 3600, seconds % 3600 / 60),
        _ => match (seconds / 86_400, seconds % 86_400 / 3600) {
            (1, 0) => "1 day".to_owned(),
            (days, 0) => format!("{days} days"),
            (days, hours) => format!("{days}d {hours}h"),
        },
    }
}

/// Returns whole milliseconds, as they are written to files.
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_in_both_forms() {
        assert_eq!(parse_duration("90"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_duration("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_duration(" 1h30m "), Ok(Duration::from_mins(90)));
        assert_eq!(parse_duration("5 apples"), Err(DurationError::Unreadable("5 apples".into())));
        assert_eq!(parse_duration("-3"), Err(DurationError::NotPositive));
        assert_eq!(parse_duration("nan"), Err(DurationError::NotPositive));
        assert_eq!(parse_duration("1e300"), Err(DurationError::TooLong));
    }

    #[test]
    fn a_span_begins_at_a_date_or_so_long_ago() {
        let now = Timestamp::from_millis(1_763_682_527_123);
        let from = |text: &str| text.parse::<Since>().map(|since| since.from(now).to_string());
        assert_eq!(from("1d").unwrap(), "2025-11-19T23:48:47.123Z");
        assert_eq!(from("90").unwrap(), "2025-11-20T23:47:17.123Z");
        assert_eq!(from(" 2025-11-01 ").unwrap(), "2025-11-01T00:00:00.000Z");
        assert_eq!(from("2025-11-01T02:00:00+02:00").unwrap(), "2025-11-01T00:00:00.000Z");
        for text in ["", "yesterday", "2025-13-01", "20251101T000000", "01.11.2025"] {
            assert_eq!(from(text), Err(SinceError::Unreadable), "{text}");
        }
        assert_eq!(from("-1"), Err(SinceError::Duration(DurationError::NotPositive)));
    }

    #[test]
    fn spans_read_naturally() {
        let shown = |ms| human(Duration::from_millis(ms));
        assert_eq!(shown(340), "340ms");
        assert_eq!(shown(2_340), "2.3s");
        assert_eq!(shown(154_000), "2m 34s");
        assert_eq!(shown(3_840_000), "1h 4m");
        assert_eq!(shown(604_800_000), "7 days");
        assert_eq!(shown(90_000_000), "1d 1h");
    }

    #[test]
    fn timestamps_survive_a_round_trip() {
        let then = Timestamp::from_millis(1_763_682_527_123);
        assert_eq!(then.to_string(), "2025-11-20T23:48:47.123Z");
        assert_eq!(Timestamp::try_from(then.to_string()).unwrap(), then);
        assert_eq!(then.compact(), "20251120T234847");
    }
}
