//! A UPnP device: SSDP, a description, and the three actions that the client uses.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::watch;

use super::{Entry, ProtocolSupport, RouterState};

const SERVICE: &str = "urn:schemas-upnp-org:service:WANIPConnection:1";

pub async fn start(
    ip: Ipv4Addr,
    ssdp: UdpSocket,
    state: Arc<Mutex<RouterState>>,
    count: watch::Sender<u32>,
) {
    let listener = TcpListener::bind((ip, 0)).await.unwrap();
    let location = format!("http://{}/igd/root.xml", listener.local_addr().unwrap());
    tokio::spawn(answer_searches(ssdp, state.clone(), location));
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::spawn(serve_soap_request(stream, state.clone(), count.clone()));
        }
    });
}

async fn answer_searches(socket: UdpSocket, state: Arc<Mutex<RouterState>>, here: String) {
    let mut buffer = [0; 2048];
    loop {
        let (len, from) = socket.recv_from(&mut buffer).await.unwrap();
        let question = std::str::from_utf8(&buffer[..len]).unwrap();
        assert!(question.starts_with("M-SEARCH * HTTP/1.1\r\n"), "{question}");
        assert!(question.contains("MAN: \"ssdp:discover\"\r\n"), "{question}");
        let answer = {
            let state = state.lock().unwrap();
            match &state.igd {
                ProtocolSupport::Silent | ProtocolSupport::Unsupported => continue,
                ProtocolSupport::Bytes(bytes) => bytes.clone(),
                ProtocolSupport::Supported => {
                    let location = state.location.as_ref().unwrap_or(&here);
                    format!("HTTP/1.1 200 OK\r\nCACHE-CONTROL: max-age=120\r\nLOCATION: {location}\r\n\r\n")
                        .into_bytes()
                }
            }
        };
        socket.send_to(&answer, from).await.unwrap();
    }
}

async fn serve_soap_request(
    mut stream: TcpStream,
    state: Arc<Mutex<RouterState>>,
    count: watch::Sender<u32>,
) {
    let (head, body) = read_request(&mut stream).await;
    if state.lock().unwrap().stalls {
        // Holds the connection until the client gives up.
        let _ = stream.read(&mut [0]).await;
        return;
    }
    let (status, body) = answer(&mut state.lock().unwrap(), &head, &body, &stream);
    // Two chunks, as some routers send.
    let (a, b) = body.split_at(body.len() / 2);
    let answer = format!(
        "HTTP/1.1 {status}\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{a}\r\n{:x}\r\n{b}\r\n0\r\n\r\n",
        a.len(),
        b.len()
    );
    stream.write_all(answer.as_bytes()).await.unwrap();
    count.send_modify(|count| *count += 1);
}

async fn read_request(stream: &mut TcpStream) -> (String, String) {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8(bytes.clone()).unwrap();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
            if body.len() == length.map_or(0, |length| length.parse().unwrap()) {
                return (head.to_owned(), body.to_owned());
            }
        }
        assert!(stream.read_buf(&mut bytes).await.unwrap() > 0, "half a request: {text}");
    }
}

fn answer(
    state: &mut RouterState,
    head: &str,
    body: &str,
    stream: &TcpStream,
) -> (&'static str, String) {
    if head.starts_with("GET /igd/root.xml ") {
        let service = format!(
            "<service><serviceType>{SERVICE}</serviceType><controlURL>ctl/IPConn</controlURL></service>"
        );
        return (
            "200 OK",
            format!("<?xml version=\"1.0\"?><root><device>{service}</device></root>"),
        );
    }
    assert!(head.starts_with("POST /igd/ctl/IPConn "), "{head}");
    let document = roxmltree::Document::parse(body).unwrap();
    let action = document.descendants().find(|node| node.tag_name().namespace() == Some(SERVICE));
    let action = action.expect("an action of the service");
    let name = action.tag_name().name();
    assert!(head.contains(&format!("SOAPAction: \"{SERVICE}#{name}\"")), "{head}");
    let arguments: BTreeMap<&str, &str> = action
        .children()
        .map(|node| (node.tag_name().name(), node.text().unwrap_or_default()))
        .collect();
    let done = match name {
        "GetExternalIPAddress" => {
            Ok(format!("<NewExternalIPAddress>{}</NewExternalIPAddress>", state.external_ip))
        }
        "AddPortMapping" => add(state, &arguments, stream).map(|()| String::new()),
        "DeletePortMapping" => {
            let port: u16 = arguments["NewExternalPort"].parse().unwrap();
            state.mappings.remove(&port).map(|_| String::new()).ok_or(714)
        }
        other => panic!("{other}"),
    };
    match done {
        Ok(values) => {
            let inner =
                format!("<u:{name}Response xmlns:u=\"{SERVICE}\">{values}</u:{name}Response>");
            ("200 OK", envelope(&inner))
        }
        Err(code) => {
            let detail = format!("<UPnPError><errorCode>{code}</errorCode></UPnPError>");
            ("500 Internal Server Error", envelope(&format!("<s:Fault>{detail}</s:Fault>")))
        }
    }
}

fn add(
    state: &mut RouterState,
    arguments: &BTreeMap<&str, &str>,
    stream: &TcpStream,
) -> Result<(), u16> {
    let number = |name: &str| arguments[name].parse::<u32>().unwrap();
    assert_eq!((arguments["NewProtocol"], arguments["NewEnabled"]), ("UDP", "1"));
    assert_eq!(arguments["NewRemoteHost"], "");
    let client: Ipv4Addr = arguments["NewInternalClient"].parse().unwrap();
    assert_eq!(stream.peer_addr().unwrap().ip(), client, "only for oneself");
    let (external, inside) = (number("NewExternalPort") as u16, number("NewInternalPort") as u16);
    let lifetime = number("NewLeaseDuration");
    let to = SocketAddrV4::new(client, inside);
    if state.refuses {
        return Err(606);
    }
    if state.permanent_only && lifetime != 0 {
        return Err(725);
    }
    if state.same_port && external != inside {
        return Err(724);
    }
    if state.mappings.get(&external).is_some_and(|known| known.to != to) {
        return Err(718);
    }
    state.mappings.insert(external, Entry { to, lifetime, nonce: None });
    Ok(())
}

fn envelope(inner: &str) -> String {
    format!(
        "<?xml version=\"1.0\"?><s:Envelope xmlns:s=\"http://schemas.xmlsoap.org/soap/envelope/\">\
         <s:Body>{inner}</s:Body></s:Envelope>"
    )
}
