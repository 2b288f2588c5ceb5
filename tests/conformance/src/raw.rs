//! Calls with bytes that no Tharsis client would send.

use tharsis_protos::connection::{Called, Credentials};
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Endpoint;

/// Calls `path` of the control store at `address` with the bytes of a message; what it answers is not looked
/// at.
///
/// # Errors
/// The server's refusal.
///
/// # Panics
/// If nothing answers there.
pub async fn call(
    address: &str,
    own: &Credentials,
    path: &str,
    message: Vec<u8>,
) -> Result<(), tonic::Status> {
    let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
    let channel = own.channel(&endpoint, address, Called::Control);
    let mut client = tonic::client::Grpc::new(channel).max_encoding_message_size(usize::MAX);
    client.ready().await.unwrap();
    let path = PathAndQuery::try_from(path).unwrap();
    client.unary(tonic::Request::new(message), path, Raw).await.map(drop)
}

/// As [`call`], with the messages of a stream, one after the other.
///
/// # Errors
/// The server's refusal.
///
/// # Panics
/// If nothing answers there.
pub async fn stream(
    address: &str,
    own: &Credentials,
    path: &str,
    messages: Vec<Vec<u8>>,
) -> Result<(), tonic::Status> {
    let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
    let channel = own.channel(&endpoint, address, Called::Control);
    let mut client = tonic::client::Grpc::new(channel);
    client.ready().await.unwrap();
    let path = PathAndQuery::try_from(path).unwrap();
    let messages = tonic::Request::new(futures::stream::iter(messages));
    client.streaming(messages, path, Raw).await.map(drop)
}

/// Bytes as they are.
pub struct Raw;

impl tonic::codec::Codec for Raw {
    type Encode = Vec<u8>;
    type Decode = ();
    type Encoder = Raw;
    type Decoder = Raw;

    fn encoder(&mut self) -> Raw {
        Raw
    }

    fn decoder(&mut self) -> Raw {
        Raw
    }
}

impl tonic::codec::Encoder for Raw {
    type Item = Vec<u8>;
    type Error = tonic::Status;

    fn encode(
        &mut self,
        item: Vec<u8>,
        buffer: &mut tonic::codec::EncodeBuf<'_>,
    ) -> Result<(), tonic::Status> {
        bytes::BufMut::put_slice(buffer, &item);
        Ok(())
    }
}

impl tonic::codec::Decoder for Raw {
    type Item = ();
    type Error = tonic::Status;

    fn decode(&mut self, buffer: &mut tonic::codec::DecodeBuf<'_>) -> Result<Option<()>, tonic::Status> {
        let left = bytes::Buf::remaining(buffer);
        bytes::Buf::advance(buffer, left);
        Ok(Some(()))
    }
}
