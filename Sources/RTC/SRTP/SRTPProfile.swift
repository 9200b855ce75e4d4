/// A supported SRTP protection profile. The raw value is the profile's number in the DTLS `use_srtp` extension (RFC
/// 5764 §4.1.2, RFC 7714 §14.2). The cases are in order of preference. GCM is first, because it takes about half the
/// CPU time.
public enum SRTPProfile: UInt16, Sendable, CaseIterable {
    case aeadAES128GCM = 0x0007
    case aes128CMSHA1 = 0x0001

    /// The maximum length in bytes of an encrypted packet. No UDP datagram is longer.
    static let maxBytes = 65_535

    /// The name that browsers report in `getStats` (`RTCTransportStats.srtpCipher`), which is the one in IANA's
    /// registry of SRTP crypto suites.
    public var name: String {
        switch self {
        case .aeadAES128GCM: "AEAD_AES_128_GCM"
        case .aes128CMSHA1: "AES_CM_128_HMAC_SHA1_80"
        }
    }

    /// The length in bytes of a master key and of a session key.
    public var keyLength: Int { 16 }

    /// The length in bytes of a master salt and of a session salt.
    public var saltLength: Int { self == .aeadAES128GCM ? 12 : 14 }

    /// The number of bytes that SRTP adds to an RTP packet, which is the length of the tag.
    public var rtpOverhead: Int { self == .aeadAES128GCM ? 16 : 10 }

    /// The number of bytes that SRTCP adds to an RTCP packet, for the tag and for the E flag with the index.
    public var rtcpOverhead: Int { rtpOverhead + 4 }

    /// The number of bytes to export from DTLS for both directions (RFC 5764 §4.2).
    public var exportLength: Int { 2 * (keyLength + saltLength) }

    /// The master keys and salts of both directions. "Client" and "server" are the roles in the DTLS handshake: a DTLS
    /// server encrypts with the server key and decrypts with the client key.
    public struct KeyingMaterial: Sendable {
        public let clientKey: [UInt8]
        public let serverKey: [UInt8]
        public let clientSalt: [UInt8]
        public let serverSalt: [UInt8]

        /// Splits the key block exported with the label `EXTRACTOR-dtls_srtp` (RFC 5764 §4.2).
        ///
        /// - Parameter exported: the key block, which must have `profile.exportLength` bytes; otherwise the result is nil.
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
