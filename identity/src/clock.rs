//! Words for certificates that do not hold now: often one of the clocks is wrong.

use rustls::pki_types::UnixTime;
use rustls::{AlertDescription, CertificateError, Error};
use time::OffsetDateTime;

/// An error in words about clocks, with both times; none if it is about something else.
#[must_use]
pub fn words_about_clocks(error: &Error) -> Option<String> {
    match error {
        Error::InvalidCertificate(CertificateError::NotValidYetContext { time, not_before }) => {
            Some(format!(
                "CertificateNotYetValid: it is {} by the clock of this machine, and the other side's certificate is valid \
             from {}; set the clocks",
                shown(*time),
                shown(*not_before)
            ))
        }
        Error::InvalidCertificate(CertificateError::ExpiredContext { time, not_after }) => Some(format!(
            "CertificateExpired: it is {} by the clock of this machine, and the other side's certificate was valid \
             until {}",
            shown(*time),
            shown(*not_after)
        )),
        Error::AlertReceived(AlertDescription::CertificateExpired) => Some(format!(
            "the certificate of this machine is not valid by the clock of the other side; it is {} by the clock of this \
             machine",
            shown(UnixTime::now())
        )),
        _ => None,
    }
}

/// As `2026-11-25 06:05:04 UTC`.
fn shown(time: UnixTime) -> String {
    let unknown = || format!("{} s after 1970", time.as_secs());
    let time = i64::try_from(time.as_secs()).ok().and_then(|s| OffsetDateTime::from_unix_timestamp(s).ok());
    time.map_or_else(unknown, |at| {
        format!("{} {:02}:{:02}:{:02} UTC", at.date(), at.hour(), at.minute(), at.second())
    })
}
