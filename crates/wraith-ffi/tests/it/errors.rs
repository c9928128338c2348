//! The kinds of errors.

use wraith::session::ratchet::{DecryptError, EncryptError, StartError};
use wraith::session::{OpenError, SealError};
use wraith_ffi::{Rejection, WraithError};

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
    ] {
        assert!(matches!(error, WraithError::Exhausted(_)), "{error:?}");
    }
    assert!(matches!(SealError::NotSaved.into(), WraithError::WrongState(_)));
}

#[test]
fn late_repeated_and_forged_messages_are_different_errors() {
    let late = [OpenError::TooOld.into(), DecryptError::TooOld.into()];
    assert!(late.iter().all(|error| matches!(error, WraithError::TooOld(_))), "{late:?}");
    let repeated = [OpenError::Replayed.into(), DecryptError::Replayed.into()];
    assert!(repeated.iter().all(|error| matches!(error, WraithError::Replayed(_))), "{repeated:?}");
    let forged = [OpenError::Unauthentic.into(), DecryptError::Unauthentic.into()];
    assert!(forged.iter().all(|error| matches!(error, WraithError::Unauthentic(_))), "{forged:?}");
    assert_eq!(Rejection::from(&WraithError::from(OpenError::TooOld)), Rejection::TooOld);
    assert_eq!(Rejection::from(&WraithError::from(DecryptError::TooOld)), Rejection::TooOld);
}
