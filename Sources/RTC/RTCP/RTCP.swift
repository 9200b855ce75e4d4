/// RTCP packets (RFC 3550 §6, RFC 4585, RFC 5104), as values and as views of the bytes they were parsed from. `RTCPCompound`
/// reads the packets, and the `write…` functions write them.
public enum RTCP {
    /// One RTCP packet. Packets that contain lists are views and are valid only as long as the parsed bytes.
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
        case application(Application)
        /// An unsupported packet type or feedback format, such as XR. RFC 3550 §6.1 requires receivers to ignore it.
        case unknown(type: UInt8, format: UInt8)
        /// A packet whose length does not match its content.
        case malformed(type: UInt8)
    }

    /// The packet types (RFC 3550 §12.1, RFC 4585 §6.1).
    enum PacketType: UInt8 {
        case senderReport = 200
        case receiverReport = 201
        case sourceDescription = 202
        case bye = 203
        case application = 204
        case transportLayerFeedback = 205
        case payloadSpecificFeedback = 206
    }

    /// The format of a NACK (RFC 4585 §6.2.1).
    static let nackFormat: UInt8 = 1
    /// The format of transport-wide feedback (draft-holmer-rmcat-transport-wide-cc-extensions-01 §3.1).
    static let transportFeedbackFormat: UInt8 = 15
    /// The format of a picture loss indication (RFC 4585 §6.3.1).
    static let pliFormat: UInt8 = 1
    /// The format of a full intra request (RFC 5104 §4.3.1).
    static let firFormat: UInt8 = 4
    /// The format of "application layer feedback" (RFC 4585 §6.4), which REMB uses.
    static let applicationFormat: UInt8 = 15
    static let headerLength = 4

    /// A sender report (RFC 3550 §6.4.1).
    public struct SenderReport {
        public var info: SenderInfo
        public var blocks: ReportBlocks
    }

    /// The sender info of a sender report, 24 bytes.
    public struct SenderInfo: Hashable, Sendable {
        static let length = 24

        public var ssrc: UInt32
        public var ntp: NTPTime
        /// The same moment as `ntp`, in RTP timestamp units.
        public var rtpTimestamp: UInt32
        public var packetCount: UInt32
        /// The number of payload bytes sent, without headers and padding.
        public var octetCount: UInt32

        public init(ssrc: UInt32, ntp: NTPTime, rtpTimestamp: UInt32, packetCount: UInt32, octetCount: UInt32) {
            (self.ssrc, self.ntp, self.rtpTimestamp) = (ssrc, ntp, rtpTimestamp)
            (self.packetCount, self.octetCount) = (packetCount, octetCount)
        }
    }

    /// A receiver report (RFC 3550 §6.4.2).
    public struct ReceiverReport {
        public var ssrc: UInt32
        public var blocks: ReportBlocks
    }

    /// A reception report block about one source, 24 bytes (RFC 3550 §6.4.1).
    public struct ReportBlock: Hashable, Sendable {
        static let length = 24

        public var ssrc: UInt32
        /// The fraction of packets lost since the previous report, in units of 1/256.
        public var fractionLost: UInt8
        /// The cumulative number of lost packets, a signed 24-bit number.
        public var lost: Int32
        /// The extended highest sequence number, with the cycles in the upper 16 bits.
        public var highestSequenceNumber: UInt32
        /// The interarrival jitter in RTP timestamp units.
        public var jitter: UInt32
        /// The middle 32 bits of the NTP time in the most recent sender report; 0 if none has arrived.
        public var lastSenderReport: UInt32
        /// The time since the most recent sender report arrived, in units of 2^-16 seconds.
        public var delaySinceLastSenderReport: UInt32

        public init(
            ssrc: UInt32, fractionLost: UInt8, lost: Int32, highestSequenceNumber: UInt32, jitter: UInt32,
            lastSenderReport: UInt32, delaySinceLastSenderReport: UInt32
        ) {
            (self.ssrc, self.fractionLost, self.lost) = (ssrc, fractionLost, lost)
            (self.highestSequenceNumber, self.jitter) = (highestSequenceNumber, jitter)
            (self.lastSenderReport, self.delaySinceLastSenderReport) = (lastSenderReport, delaySinceLastSenderReport)
        }

        /// Returns the round-trip time to the receiver (RFC 3550 §6.4.1). Nil if the receiver has no sender report yet, or if
        /// the result would be negative.
        ///
        /// - Parameter now: the current time of the clock that the sender reports use.
        public func roundTrip(at now: NTPTime) -> MediaInterval? {
            guard lastSenderReport != 0 else { return nil }
            let units = now.middle32 &- lastSenderReport &- delaySinceLastSenderReport
            return units < 0x8000_0000 ? MediaInterval(ntpShort: units) : nil
        }
    }

    /// A BYE packet (RFC 3550 §6.6). Its optional reason is human-readable text and is ignored.
    public struct Bye {
        public var sources: Sources
    }

    /// An application-defined packet (RFC 3550 §6.7). Nodes of a cluster exchange them; browsers send none.
    public struct Application {
        public var sender: UInt32
        /// A number from 0 to 31 whose meaning the application defines.
        public var subtype: UInt8
        /// Four ASCII characters that identify the application, the first in the highest byte.
        public var name: UInt32
        /// The content, a multiple of four bytes.
        public var data: UnsafeRawBufferPointer
    }

    /// A report of lost packets (RFC 4585 §6.2.1).
    public struct NACK {
        public var sender: UInt32
        public var media: UInt32
        public var lost: LostSequenceNumbers
    }

    /// A keyframe request (RFC 4585 §6.3.1).
    public struct PictureLossIndication: Hashable, Sendable {
        public var sender: UInt32
        public var media: UInt32
    }

    /// A keyframe request for each of the listed sources (RFC 5104 §4.3.1).
    public struct FullIntraRequest {
        public var sender: UInt32
        public var entries: Entries

        /// The request for one source.
        public struct Entry: Hashable, Sendable {
            public var ssrc: UInt32
            /// The request's number, which increases with each request. A request with the same number is a retransmission.
            public var sequenceNumber: UInt8

            public init(ssrc: UInt32, sequenceNumber: UInt8) {
                (self.ssrc, self.sequenceNumber) = (ssrc, sequenceNumber)
            }
        }
    }

    /// The estimated maximum bitrate of the listed sources together (draft-alvestrand-rmcat-remb-03).
    public struct ReceiverEstimatedMaximumBitrate {
        public var sender: UInt32
        /// The bitrate in bits per second; larger values are reduced to the largest 64-bit number.
        public var bitrate: UInt64
        public var sources: Sources
    }
}
