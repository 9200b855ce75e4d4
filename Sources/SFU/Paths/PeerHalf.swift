import RTC

/// The part of a peer connection that handles media in one direction: a `Publisher` or a `Subscriber`.
protocol PeerHalf: AnyObject {
    /// The time until which ticks may skip the half.
    var idleUntil: MediaTime { get }
    /// Lets the next tick not skip the half.
    func wake()

    // MARK: Negotiation

    /// Returns the kind of media in this section of the description; nil if there is no such section.
    func kind(of mid: String) -> MediaKind?
    /// Returns the RTP stream that the server sends in this section; nil for a new section, and for a publisher.
    func localSource(_ mid: String) -> (ssrc: UInt32, repairSSRC: UInt32?)?
    /// Applies the negotiated parameters of a section.
    func apply(_ media: NegotiatedMedia, using generator: inout any RandomNumberGenerator)
    /// Ends the tracks of all sections but these.
    func removeTracks(except mids: Set<String>)

    // MARK: Life

    /// Lets streams find the tracks. Called when the connection replaces the client's previous one, and after each
    /// later negotiation.
    func enter()
    /// Ends all tracks.
    func end()
    /// Another path was selected, after there had been one.
    func pathChanged()
    /// Media can be sent to the client now, or no longer.
    func writabilityChanged()

    // MARK: Packets and time

    /// - Parameter spare: how many bytes after the packet may be overwritten: those of the authentication tag.
    func receiveMedia(_ bytes: UnsafeRawBufferPointer, spare: Int, now: MediaTime, arrivedAt: MediaTime)
    func receiveControl(_ packet: RTCP.Packet, now: MediaTime)
    /// Returns whether the client receives or sends the RTP stream with this SSRC.
    func sends(_ ssrc: UInt32) -> Bool
    /// Performs the work that is due. Called only while media can be sent to the client.
    func tick(now: MediaTime)
}

/// What the half of a peer connection needs to know of the connection.
struct PeerLink {
    let client: Key
    let transport: PeerTransport
    /// The server's SSRC in RTCP packets (RFC 3550 §6.4.2).
    let ownSSRC: UInt32
    let cname: String

    init(client: Key, transport: PeerTransport, using generator: inout some RandomNumberGenerator) {
        (self.client, self.transport) = (client, transport)
        ownSSRC = UInt32.random(in: 1...UInt32.max, using: &generator)
        // The CNAME is random, so it identifies no user, and is the same for audio and video (RFC 7022 §4.2).
        cname = String(UInt64.random(in: 0...UInt64.max, using: &generator), radix: 36)
    }

    /// Creates the link of a client whose packets arrive over a relay. SRTP keeps state for each SSRC of reports, so all clients share
    /// the relay's.
    init(client: Key, over relay: PeerLink) {
        (self.client, transport, ownSSRC, cname) = (client, relay.transport, relay.ownSSRC, relay.cname)
    }
}
