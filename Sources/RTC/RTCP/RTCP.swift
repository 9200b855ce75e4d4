/// The packets of RTCP (RFC 3550 §6, RFC 4585, RFC 5104): what they say, as values and as views of the bytes they were
/// parsed from. `RTCPCompound` reads them, the functions `write…` write them.
public enum RTCP {
    /// One packet. Those with lists are views: good as long as the bytes are.
    public enum Packet {
        case senderReport(SenderReport)
        case receiverReport(ReceiverReport)
        case sourceDescription(SourceDescription)
        case bye(Bye)
        case nack(NACK)
        case pli(PictureLossIndication)
        case fir(FullIntraRequest)
        case remb(ReceiverEstimatedMaximumBitrate)
        case transportFeedback(TransportFeedbackReport)
        /// A type or a feedback format that means nothing to us, XR and APP among them. RFC 3550 §6.1 has it ignored.
        case unknown(type: UInt8, format: UInt8)
        /// Its length does not bear out what it says.
        case malformed(type: UInt8)
    }

    /// RFC 3550 §12.1, RFC 4585 §6.1.
    enum PacketType: UInt8 {
        case senderReport = 200
        case receiverReport = 201
        case sourceDescription = 202
        case bye = 203
        case transportLayerFeedback = 205
        case payloadSpecificFeedback = 206
    }

    /// RFC 4585 §6.2.1.
    static let nackFormat: UInt8 = 1
    /// draft-holmer-rmcat-transport-wide-cc-extensions-01 §3.1.
    static let transportFeedbackFormat: UInt8 = 15
    /// RFC 4585 §6.3.1.
    static let pliFormat: UInt8 = 1
    /// RFC 5104 §4.3.1.
    static let firFormat: UInt8 = 4
    /// "Application layer feedback" (RFC 4585 §6.4), which REMB is.
    static let applicationFormat: UInt8 = 15
    static let headerLength = 4

    /// RFC 3550 §6.4.1.
    public struct SenderReport {
        public var info: SenderInfo
        public var blocks: ReportBlocks
    }

    /// What a sender says of itself, in 24 bytes.
    public struct SenderInfo: Hashable, Sendable {
        static let length = 24

        public var ssrc: UInt32
        public var ntp: NTPTime
        /// The same moment as `ntp`, by the clock of the packets' timestamps.
        public var rtpTimestamp: UInt32
        public var packetCount: UInt32
        /// Of payload, without headers and padding.
        public var octetCount: UInt32

        public init(ssrc: UInt32, ntp: NTPTime, rtpTimestamp: UInt32, packetCount: UInt32, octetCount: UInt32) {
            (self.ssrc, self.ntp, self.rtpTimestamp) = (ssrc, ntp, rtpTimestamp)
            (self.packetCount, self.octetCount) = (packetCount, octetCount)
        }
    }

    /// RFC 3550 §6.4.2.
    public struct ReceiverReport {
        public var ssrc: UInt32
        public var blocks: ReportBlocks
    }

    /// What a receiver says of one source, in 24 bytes (RFC 3550 §6.4.1).
    public struct ReportBlock: Hashable, Sendable {
        static let length = 24

        public var ssrc: UInt32
        /// Since the last report, in 1/256.
        public var fractionLost: UInt8
        /// Since the beginning, in 24 bits with a sign.
        public var lost: Int32
        /// With its cycles in the upper half.
        public var highestSequenceNumber: UInt32
        /// In the timestamps' units.
        public var jitter: UInt32
        /// The middle of the NTP time of the last sender report, 0 if there was none.
        public var lastSenderReport: UInt32
        /// In 2^-16 seconds.
        public var delaySinceLastSenderReport: UInt32

        public init(
            ssrc: UInt32, fractionLost: UInt8, lost: Int32, highestSequenceNumber: UInt32, jitter: UInt32,
            lastSenderReport: UInt32, delaySinceLastSenderReport: UInt32
        ) {
            (self.ssrc, self.fractionLost, self.lost) = (ssrc, fractionLost, lost)
            (self.highestSequenceNumber, self.jitter) = (highestSequenceNumber, jitter)
            (self.lastSenderReport, self.delaySinceLastSenderReport) = (lastSenderReport, delaySinceLastSenderReport)
        }

        /// From here to the receiver and back (RFC 3550 §6.4.1). Nil when the block does not tell, or tells of the
        /// future.
        ///
        /// - Parameter now: by the clock that the sender reports were written with.
        public func roundTrip(at now: NTPTime) -> MediaInterval? {
            guard lastSenderReport != 0 else { return nil }
            let units = now.middle32 &- lastSenderReport &- delaySinceLastSenderReport
            return units < 0x8000_0000 ? MediaInterval(ntpShort: units) : nil
        }
    }

    /// RFC 3550 §6.6. The reason, if there is one, is not read: it is text for people.
    public struct Bye {
        public var sources: Sources
    }

    /// RFC 4585 §6.2.1: these packets are missing.
    public struct NACK {
        public var sender: UInt32
        public var media: UInt32
        public var lost: LostSequenceNumbers
    }

    /// RFC 4585 §6.3.1: a keyframe, please.
    public struct PictureLossIndication: Hashable, Sendable {
        public var sender: UInt32
        public var media: UInt32
    }

    /// RFC 5104 §4.3.1: a keyframe of each of these, please.
    public struct FullIntraRequest {
        public var sender: UInt32
        public var entries: Entries

        public struct Entry: Hashable, Sendable {
            public var ssrc: UInt32
            /// Goes up by one with each request; the same number again is the same request.
            public var sequenceNumber: UInt8

            public init(ssrc: UInt32, sequenceNumber: UInt8) {
                (self.ssrc, self.sequenceNumber) = (ssrc, sequenceNumber)
            }
        }
    }

    /// How much may be sent of all these together (draft-alvestrand-rmcat-remb-03).
    public struct ReceiverEstimatedMaximumBitrate {
        public var sender: UInt32
        /// In bits per second; more than 64 bits hold is said as the most they hold.
        public var bitrate: UInt64
        public var sources: Sources
    }
}
