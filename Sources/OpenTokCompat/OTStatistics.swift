import Confab
import Foundation

/// Receives the audio level of a publisher.
@preconcurrency @MainActor public protocol OTPublisherKitAudioLevelDelegate: AnyObject {
    /// Called with the audio level, from 0 to 1, about once a second.
    func publisher(_ publisher: OTPublisherKit, audioLevelUpdated audioLevel: Float)
}

/// Receives the audio level of a subscriber.
@preconcurrency @MainActor public protocol OTSubscriberKitAudioLevelDelegate: AnyObject {
    /// Called with the audio level, from 0 to 1, about once a second.
    func subscriber(_ subscriber: OTSubscriberKit, audioLevelUpdated audioLevel: Float)
}

/// Receives captions.
@preconcurrency @MainActor public protocol OTSubscriberKitCaptionsDelegate: AnyObject {
    /// A caption arrived. Never called: captions are not supported. Optional.
    func subscriber(_ subscriber: OTSubscriberKit, caption text: String, isFinal: Bool)
}

extension OTSubscriberKitCaptionsDelegate {
    /// Does nothing.
    public func subscriber(_ subscriber: OTSubscriberKit, caption text: String, isFinal: Bool) {}
}

/// Receives counters of what a publisher has sent. Each array has one element, the sum for all subscribers.
@preconcurrency @MainActor public protocol OTPublisherKitNetworkStatsDelegate: AnyObject {
    /// Called with the counters of the video since the media connection began. Optional.
    func publisher(
        _ publisher: OTPublisherKit, videoNetworkStatsUpdated stats: [OTPublisherKitVideoNetworkStats])
    /// Called with the counters of the audio since the media connection began. Optional.
    func publisher(
        _ publisher: OTPublisherKit, audioNetworkStatsUpdated stats: [OTPublisherKitAudioNetworkStats])
}

extension OTPublisherKitNetworkStatsDelegate {
    /// Does nothing.
    public func publisher(
        _ publisher: OTPublisherKit, videoNetworkStatsUpdated stats: [OTPublisherKitVideoNetworkStats]
    ) {}
    /// Does nothing.
    public func publisher(
        _ publisher: OTPublisherKit, audioNetworkStatsUpdated stats: [OTPublisherKitAudioNetworkStats]
    ) {}
}

/// Receives counters of what a subscriber has received.
@preconcurrency @MainActor public protocol OTSubscriberKitNetworkStatsDelegate: AnyObject {
    /// Called with the counters of the video since the media connection began. Optional.
    func subscriber(
        _ subscriber: OTSubscriberKit, videoNetworkStatsUpdated stats: OTSubscriberKitVideoNetworkStats)
    /// Called with the counters of the audio since the media connection began. Optional.
    func subscriber(
        _ subscriber: OTSubscriberKit, audioNetworkStatsUpdated stats: OTSubscriberKitAudioNetworkStats)
}

extension OTSubscriberKitNetworkStatsDelegate {
    /// Does nothing.
    public func subscriber(
        _ subscriber: OTSubscriberKit, videoNetworkStatsUpdated stats: OTSubscriberKitVideoNetworkStats
    ) {}
    /// Does nothing.
    public func subscriber(
        _ subscriber: OTSubscriberKit, audioNetworkStatsUpdated stats: OTSubscriberKitAudioNetworkStats
    ) {}
}

/// Receives all counters of a publisher.
@preconcurrency @MainActor public protocol OTPublisherKitRtcStatsReportDelegate: AnyObject {
    /// Called with the report requested with `getRtcStatsReport`. `stats` has one element. Implementing this method is
    /// optional.
    func publisher(_ publisher: OTPublisherKit, rtcStatsReport stats: [OTPublisherRtcStats])
}

extension OTPublisherKitRtcStatsReportDelegate {
    /// Does nothing.
    public func publisher(_ publisher: OTPublisherKit, rtcStatsReport stats: [OTPublisherRtcStats]) {}
}

/// Receives all counters of a subscriber.
@preconcurrency @MainActor public protocol OTSubscriberKitRtcStatsReportDelegate: AnyObject {
    /// Called with the report requested with `getRtcStatsReport`, as a JSON array of statistics objects. Their fields
    /// are named as in the W3C specification of WebRTC statistics. Implementing this method is optional.
    func subscriber(_ subscriber: OTSubscriberKit, rtcStatsReport jsonArrayOfReports: String)
}

extension OTSubscriberKitRtcStatsReportDelegate {
    /// Does nothing.
    public func subscriber(_ subscriber: OTSubscriberKit, rtcStatsReport jsonArrayOfReports: String) {}
}

/// Counters of the video that a publisher has sent.
public final class OTPublisherKitVideoNetworkStats: NSObject, Sendable {
    /// Always empty, because the counters are sums for all subscribers.
    public let connectionId = ""
    /// Always empty, because the counters are sums for all subscribers.
    public let subscriberId = ""
    /// The number of packets that did not arrive.
    public let videoPacketsLost: Int64
    /// The number of RTP packets since the media connection began.
    public let videoPacketsSent: Int64
    /// The number of payload bytes.
    public let videoBytesSent: Int64
    /// When the counters were read, in milliseconds since 1970.
    public let timestamp: Double
    /// When the stream was published, in milliseconds since 1970.
    public let startTime: Double

    init(_ sent: Counters, since start: Double) {
        (videoPacketsLost, videoPacketsSent) = (sent.lost, Int64(clamping: sent.packets))
        (videoBytesSent, timestamp, startTime) = (Int64(clamping: sent.bytes), sent.time, start)
    }
}

/// Counters of the audio that a publisher has sent.
public final class OTPublisherKitAudioNetworkStats: NSObject, Sendable {
    /// Always empty, because the counters are sums for all subscribers.
    public let connectionId = ""
    /// Always empty, because the counters are sums for all subscribers.
    public let subscriberId = ""
    /// The number of packets that did not arrive.
    public let audioPacketsLost: Int64
    /// The number of RTP packets since the media connection began.
    public let audioPacketsSent: Int64
    /// The number of payload bytes.
    public let audioBytesSent: Int64
    /// When the counters were read, in milliseconds since 1970.
    public let timestamp: Double
    /// When the stream was published, in milliseconds since 1970.
    public let startTime: Double

    init(_ sent: Counters, since start: Double) {
        (audioPacketsLost, audioPacketsSent) = (sent.lost, Int64(clamping: sent.packets))
        (audioBytesSent, timestamp, startTime) = (Int64(clamping: sent.bytes), sent.time, start)
    }
}

/// Counters of the video that a subscriber has received.
public final class OTSubscriberKitVideoNetworkStats: NSObject, Sendable {
    /// The number of packets that did not arrive.
    public let videoPacketsLost: UInt64
    /// The number of RTP packets since the media connection began.
    public let videoPacketsReceived: UInt64
    /// The number of payload bytes.
    public let videoBytesReceived: UInt64
    /// When the counters were read, in milliseconds since 1970.
    public let timestamp: Double

    init(_ received: Counters) {
        (videoPacketsLost, videoPacketsReceived) = (UInt64(clamping: received.lost), received.packets)
        (videoBytesReceived, timestamp) = (received.bytes, received.time)
    }
}

/// Counters of the audio that a subscriber has received.
public final class OTSubscriberKitAudioNetworkStats: NSObject, Sendable {
    /// The number of packets that did not arrive.
    public let audioPacketsLost: UInt64
    /// The number of RTP packets since the media connection began.
    public let audioPacketsReceived: UInt64
    /// The number of payload bytes.
    public let audioBytesReceived: UInt64
    /// When the counters were read, in milliseconds since 1970.
    public let timestamp: Double

    init(_ received: Counters) {
        (audioPacketsLost, audioPacketsReceived) = (UInt64(clamping: received.lost), received.packets)
        (audioBytesReceived, timestamp) = (received.bytes, received.time)
    }
}

/// All counters of a publisher.
public final class OTPublisherRtcStats: NSObject, Sendable {
    /// The id of this client's connection. It is not a subscriber's, because one report covers all subscribers.
    public let connectionId: String
    /// The counters: a JSON array with the names of WebRTC's statistics (W3C).
    public let jsonArrayOfReports: String

    init(_ connectionId: String, _ json: String) { (self.connectionId, jsonArrayOfReports) = (connectionId, json) }
}
