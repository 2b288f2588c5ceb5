//! Names in the control store that one of many gets, though answers may be lost.

use prost::bytes::Bytes;
use tharsis_gcs::ControlClient;
use tharsis_protos::CallError;

/// Attempts to claim a name whose answers are lost.
const CLAIMS_MAX: usize = 5;

/// Writes a record where there is none, or over the one that is known. Returns the one that is there instead.
///
/// # Errors
/// A refusal, or no answer to several attempts: then the record may be there, and be this one's.
pub async fn claim(
    control: &ControlClient,
    (table, key): (&str, &Bytes),
    record: &Bytes,
    over: Option<Bytes>,
) -> Result<Option<Bytes>, CallError> {
    let mut attempt = 0;
    loop {
        attempt += 1;
        let written = match &over {
            None => control.kv_put_if_absent(table, key.clone(), record.clone()).await,
            Some(old) => control.kv_replace(table, key.clone(), old.clone(), record.clone()).await,
        };
        match written {
            Ok(true) => return Ok(None),
            Ok(false) => {}
            Err(error) if error.refusal_code().is_some() || attempt == CLAIMS_MAX => return Err(error),
            // The answer was lost: whose record is there tells what happened.
            Err(_) => {}
        }
        match control.kv_get(table, key.clone()).await? {
            Some(there) if there == *record => return Ok(None),
            Some(there) if over.as_ref() != Some(&there) => return Ok(Some(there)),
            _ if attempt == CLAIMS_MAX => return Ok(over),
            _ => {}
        }
    }
}
