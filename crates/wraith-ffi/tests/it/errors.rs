//! The kinds of errors.

use wraith::session::SealError;
use wraith::session::ratchet::{DecryptError, EncryptError, StartError};
use wraith_ffi::WraithError;

#[test]
fn an_error_keeps_its_kind_and_message() {
    let error = "no ticket".parse::<wraith::Source>().unwrap_err();
    let text = error.to_string();
    assert_eq!(WraithError::from(error), WraithError::InvalidInput(text));
}

#[test]
fn used_up_and_not_yet_available_are_different_errors() {
    for error in [
        SealError::Exhausted.into(),
        EncryptError::ChainExhausted.into(),
        StartError::PreKeysExhausted.into(),
        DecryptError::TooManySkipped.into(),
    ] {
        assert!(matches!(error, WraithError::Exhausted(_)), "{error:?}");
    }
    assert!(matches!(SealError::NotSaved.into(), WraithError::WrongState(_)));
}
