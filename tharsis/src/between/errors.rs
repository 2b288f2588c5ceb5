//! Errors of frames as those of tensors, and back. All keep their class and their text.

use tharsis_dataframe::Error as OfFrames;
use tharsis_graph::{EngineFailure, Error as OfTensors};

/// The error of tensors for one of frames.
pub(crate) fn to_tensors(error: OfFrames) -> OfTensors {
    let text = || error.to_string();
    match (error.root(), error.class()) {
        (OfFrames::Cancelled, _) => OfTensors::Cancelled,
        (_, "Timeout") => OfTensors::Timeout,
        (OfFrames::Value(_), _) => OfTensors::Value(text()),
        (OfFrames::Type(_), _) => OfTensors::Type(text()),
        (OfFrames::Overflow(_), _) => OfTensors::Overflow(text()),
        (OfFrames::ZeroDivision(_), _) => OfTensors::ZeroDivision(text()),
        (_, class) => OfTensors::Engine(EngineFailure::new(class, error)),
    }
}

/// The error of frames for one of tensors, with this text.
pub(crate) fn to_frames(error: &OfTensors, text: String) -> OfFrames {
    match error {
        OfTensors::Cancelled => OfFrames::Cancelled,
        OfTensors::Engine(failure) if let Some(error) = failure.cause().downcast_ref::<OfFrames>() => {
            error.clone()
        }
        error => OfFrames::Task { class: error.class(), text },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_frames_keep_their_class_and_their_text() {
        for error in crate::error_class::tests::of_frames() {
            let made = to_tensors(error.clone());
            assert_eq!(made.class(), error.class(), "{error}");
            let back = to_frames(&made, made.to_string());
            assert_eq!(back.class(), error.class(), "{error}");
            if !matches!(made, OfTensors::Cancelled | OfTensors::Timeout) {
                assert_eq!((made.to_string(), back.to_string()), (error.to_string(), error.to_string()));
            }
        }
    }
}
