import RTC

/// The messages about streams between the two ends of a relay. Each message is the content of an RTCP APP packet (RFC 3550 §6.7),
/// whose subtype is the version of the format.
///
/// The newest demand of a client, and the newest listing, replace the older ones. They are repeated until they are acknowledged
/// (`NumberedState`), so that a lost message only costs time.
///
/// All numbers are in network byte order. The numbers in parentheses are bytes.
/// ```
///  heartbeat:       0 (1)
///  demand:          1 (1) · client (16) · number (4) · tracks (1) · for each: RelayDemand.Track
///  end:             2 (1) · client (16) · number (4)
///  listing:         3 (1) · client (16) · number (4) · index (1) · count (1) · RemoteTrackState, unless count is 0
///  acknowledgement: 4 (1) · 1 for a demand, 3 for a listing (1) · client (16) · number (4)
/// ```
enum RelayMessage: Equatable, Sendable {
    /// Shows that the relay works.
    case heartbeat
    /// What the sender's subscribers demand of a client that is connected to the receiver.
    case demand(RelayDemand)
    /// Nothing of this client is demanded any more. It is numbered like a demand.
    case end(client: Key, number: UInt32)
    /// One track of a client that is connected to the sender.
    case listing(RelayListingPart)
    /// The state with this number was applied.
    case acknowledgement(RelayAcknowledgement)

    /// The name of the packets in ASCII, "crly".
    static let name: UInt32 = 0x6372_6c79
    /// The version of the format.
    static let version: UInt8 = 1
    /// The maximum number of clients that a node demands at a time, including those whose end the other node has not acknowledged. The
    /// limit exists because both nodes visit each client in each tick.
    static let maxClients = 1024
    /// The maximum number of tracks of a client. A camera, a screen and two microphones need four.
    static let maxTracks = 16
    /// The maximum number of codecs of a track. Browsers offer up to 15 for a video.
    static let maxCodecs = 32
    /// The maximum number of encodings of a track, as for a client (`IncomingTrack.maxEncodings`).
    static let maxEncodings = 4

    /// The first byte of a message.
    private enum Kind: UInt8 { case heartbeat, demand, end, listing, acknowledgement }

    /// Reads a message. Bytes after its content are ignored, because newer versions may add members at the end.
    /// - Returns: nil if the message is malformed, too large, or not one of this version.
    init?(_ packet: RTCP.Application) {
        guard packet.name == Self.name, packet.subtype == Self.version else { return nil }
        var reader = ByteReader(packet.data)
        guard let kind = reader.u8().flatMap({ Kind(rawValue: $0) }) else { return nil }
        switch kind {
        case .heartbeat: self = .heartbeat
        case .demand:
            guard let demand = RelayDemand(&reader) else { return nil }
            self = .demand(demand)
        case .end:
            guard let client = reader.key(), let number = reader.u32() else { return nil }
            self = .end(client: client, number: number)
        case .listing:
            guard let part = RelayListingPart(&reader) else { return nil }
            self = .listing(part)
        case .acknowledgement:
            guard let acknowledgement = RelayAcknowledgement(&reader) else { return nil }
            self = .acknowledgement(acknowledgement)
        }
    }

    /// Writes the message as an APP packet, which takes at most 1200 bytes.
    /// - Parameter sender: the SSRC of the sender's reports.
    func write(sender: UInt32, to writer: inout ByteWriter) {
        RTCP.writeApplication(sender: sender, subtype: Self.version, name: Self.name, to: &writer) { writer in
            switch self {
            case .heartbeat: writer.u8(Kind.heartbeat.rawValue)
            case .demand(let demand):
                writer.u8(Kind.demand.rawValue)
                demand.write(to: &writer)
            case .end(let client, let number):
                writer.u8(Kind.end.rawValue)
                writer.key(client)
                writer.u32(number)
            case .listing(let part):
                writer.u8(Kind.listing.rawValue)
                part.write(to: &writer)
            case .acknowledgement(let acknowledgement):
                writer.u8(Kind.acknowledgement.rawValue)
                acknowledgement.write(to: &writer)
            }
        }
    }
}

/// Confirms a state.
struct RelayAcknowledgement: Equatable, Sendable {
    /// What is confirmed. The raw values are those of the confirmed messages.
    enum State: UInt8, Sendable {
        case demand = 1
        case listing = 3
    }

    var state: State
    var client: Key
    var number: UInt32

    init(_ state: State, of client: Key, _ number: UInt32) {
        (self.state, self.client, self.number) = (state, client, number)
    }

    fileprivate init?(_ reader: inout ByteReader) {
        guard let state = reader.u8().flatMap({ State(rawValue: $0) }), let client = reader.key(),
            let number = reader.u32()
        else { return nil }
        self.init(state, of: client, number)
    }

    fileprivate func write(to writer: inout ByteWriter) {
        writer.u8(state.rawValue)
        writer.key(client)
        writer.u32(number)
    }
}

extension ByteReader {
    mutating func key() -> Key? {
        guard let high = u64(), let low = u64() else { return nil }
        return Key(high: high, low: low)
    }
}

extension ByteWriter {
    mutating func key(_ key: Key) {
        u64(key.high)
        u64(key.low)
    }
}
