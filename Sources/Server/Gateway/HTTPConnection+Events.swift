import NIOHTTP1

extension HTTPConnection {
    /// An event that the state machine handles.
    enum Input: Equatable {
        /// The client sent a part of a request.
        case received(HTTPServerRequestPart)
        /// The client sent something that cannot be parsed.
        case unparsable(Refusal)
        /// The client closed its side of the connection.
        case inputClosed
        /// The channel is ready to read more.
        case read
        /// The router wrote a part of its response.
        case responded(HTTPServerResponsePart)
        /// An endpoint answered its request.
        case answered(GateResponse)
        /// An endpoint accepted a WebSocket handshake.
        case accepted
        /// The router is ready to read the file in the current request.
        case bodyWanted
        /// Whether the channel is writable. It is not writable while the client does not read the responses.
        case writable(Bool)
        /// The next turn of the event loop has begun, as `nextTurn` requested.
        case turn
        /// The server is stopping.
        case quiesce
    }

    /// A step that the shell (`HTTPGate`) carries out.
    enum Output: Equatable {
        case read
        /// A new request begins. The client has received the responses to all earlier ones.
        case began(HTTPRequestHead)
        /// Passes a part of a request to the router.
        case route(HTTPServerRequestPart)
        /// Informs the router that no more parts of requests follow in this turn of the event loop.
        case routeComplete
        /// Passes a complete request to its endpoint.
        case perform(EndpointRequest, HTTPRequestHead, [UInt8])
        case sendContinue(HTTPVersion)
        /// Writes a part of the router's response.
        case write(HTTPServerResponsePart)
        /// Drops a part of the router's response, because the request was refused or answered.
        case dropResponse
        case answer(GateResponse, to: HTTPRequestHead, keepsAlive: Bool)
        case refuse(Refusal)
        /// Accepts the WebSocket handshake. The connection is no longer HTTP.
        case upgrade(HTTPRequestHead)
        /// Requests the input `turn` in the event loop's next turn.
        case nextTurn
        /// `nextTimeout` is earlier than before, because a request with a long time limit has ended.
        case earlierTimeout
        /// Closes the connection after the client has had time to read the last response.
        case linger
        case close
    }
}
