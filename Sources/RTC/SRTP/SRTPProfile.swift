/// The SRTP protection profiles we speak; the raw value is the one of DTLS's `use_srtp` extension (RFC 5764 §4.1.2,
/// RFC 7714 §14.2). In the order of our preference: GCM costs about half.
public enum SRTPProfile: UInt16, Sendable, CaseIterable {
    case aeadAES128GCM = 0x0007
    case aes128CMSHA1 = 0x0001

    /// A packet that is longer does not fit in a UDP datagram.
    static let mostBytes = 65_535

    /// The name as `getStats` shows it (`RTCTransportStats.srtpCipher`) and as SDES registered it with IANA.
    public var name: String {
        switch self {
        case .aeadAES128GCM: "AEAD_AES_128_GCM"
        case .aes128CMSHA1: "AES_CM_128_HMAC_SHA1_80"
        }
    }

    /// Of a master key and of a session key, in bytes.
    public var keyLength: Int { 16 }

    /// Of a master salt and of a session salt, in bytes.
    public var saltLength: Int { self == .aeadAES128GCM ? 12 : 14 }

    /// Bytes that an SRTP packet is longer than its RTP packet: the tag.
    public var rtpOverhead: Int { self == .aeadAES128GCM ? 16 : 10 }

    /// Bytes that an SRTCP packet is longer than its RTCP packet: the tag, and the E flag with the index.
    public var rtcpOverhead: Int { rtpOverhead + 4 }

    /// How many bytes the DTLS exporter has to give for both directions (RFC 5764 §4.2).
    public var exportLength: Int { 2 * (keyLength + saltLength) }

    /// The master keys and salts of both directions. "Client" and "server" are the roles in the DTLS handshake: a DTLS
    /// server sends with the server's and receives with the client's.
    public struct KeyingMaterial: Sendable {
        public let clientKey: [UInt8]
        public let serverKey: [UInt8]
        public let clientSalt: [UInt8]
        public let serverSalt: [UInt8]

        /// Cuts up what was exported under the label `EXTRACTOR-dtls_srtp` (RFC 5764 §4.2).
        ///
        /// - Parameter exported: `profile.exportLength` bytes; nil comes back for any other length.
        public init?(exported: [UInt8], profile: SRTPProfile) {
            guard exported.count == profile.exportLength else { return nil }
            var rest = exported[...]
            func take(_ count: Int) -> [UInt8] {
                defer { rest = rest.dropFirst(count) }
                return Array(rest.prefix(count))
            }
            clientKey = take(profile.keyLength)
            serverKey = take(profile.keyLength)
            clientSalt = take(profile.saltLength)
            serverSalt = take(profile.saltLength)
        }
    }
}
