//! SOAP actions of a UPnP service: an XML request and an XML answer (UPnP Device Architecture 1.1
//! §3).

use super::description::{Service, child_text, parse};
use super::http;
use crate::grant::Refusal;

const OK: u16 = 200;
/// HTTP status of an answer that carries an error code.
const FAULT: u16 = 500;

/// The body of an action's answer.
#[derive(Debug)]
pub struct Answer(String);

impl Answer {
    /// Returns the value of an output argument.
    pub fn value(&self, name: &str) -> Option<String> {
        let document = parse(&self.0).ok()?;
        document.descendants().find_map(|node| child_text(node, name)).map(str::to_owned)
    }
}

/// Invokes `action`. Arguments are words and numbers of this crate, without characters that need
/// XML escaping.
///
/// # Errors
/// [`Refusal::Refused`] with the service's error code.
pub async fn invoke(
    service: &Service,
    action: &str,
    arguments: &[(&str, &str)],
) -> Result<Answer, Refusal> {
    let kind = &service.kind;
    let header = format!("SOAPAction: \"{kind}#{action}\"\r\n");
    let answer = http::post(&service.control, &header, &envelope(kind, action, arguments)).await?;
    let text = String::from_utf8(answer.body).map_err(|_| Refusal::Malformed)?;
    match answer.status {
        OK => Ok(Answer(text)),
        FAULT => {
            let code = Answer(text).value("errorCode").and_then(|code| code.parse().ok());
            Err(code.map_or(Refusal::Malformed, Refusal::Refused))
        }
        status => Err(Refusal::Refused(status)),
    }
}

fn envelope(kind: &str, action: &str, arguments: &[(&str, &str)]) -> String {
    let arguments: String =
        arguments.iter().map(|(name, value)| format!("<{name}>{value}</{name}>")).collect();
    format!(
        "<?xml version=\"1.0\"?>\
         <s:Envelope xmlns:s=\"http://schemas.xmlsoap.org/soap/envelope/\" \
         s:encodingStyle=\"http://schemas.xmlsoap.org/soap/encoding/\">\
         <s:Body><u:{action} xmlns:u=\"{kind}\">{arguments}</u:{action}></s:Body></s:Envelope>"
    )
}
