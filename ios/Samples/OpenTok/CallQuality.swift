import Foundation
import OpenTokCompat
import UIKit

/// A call with statistics: the traffic in both directions, audio levels, captions, and whether it is being recorded.
final class CallQuality: UIViewController {
    private var session: OTSession?
    private var publisher: OTPublisher?
    private var subscriber: OTSubscriber?
    private var bytes: (time: Double, count: UInt64) = (0, 0)
    private let numbers = UITextView(frame: .zero)

    func join(_ apiKey: String, _ sessionId: String, _ token: String, through proxy: String?) {
        let settings = OTSessionSettings()
        settings.singlePeerConnection = true
        settings.proxyURL = proxy
        session = OTSession(apiKey: apiKey, sessionId: sessionId, delegate: self, settings: settings)
        session?.apiQueue = .main
        var error: OTError?
        session?.connect(withToken: token, error: &error)
        show(error)
    }

    /// Requests end-to-end encryption. Confab does not offer it, so this reports an error, and the session stops
    /// publishing and subscribing.
    func encrypt(with secret: String) {
        var error: OTError?
        session?.setEncryptionSecret(secret, error: &error)
        if error?.code == OTSessionErrorCode.sessionInvalidEncryptionSecret.rawValue { show(error) }
    }

    override func viewDidLoad() {
        super.viewDidLoad()
        let report = UIAction(title: "Report") { [weak self] _ in self?.report() }
        let row = UIStackView(arrangedSubviews: [numbers, UIButton(type: .system, primaryAction: report)])
        row.frame = view.bounds
        row.distribution = .fillEqually
        view.addSubview(row)
    }

    private func report() {
        var issue: NSString?
        session?.reportIssue(&issue)
        numbers.text += "Reported as \(issue ?? "nothing")\n"
        publisher?.getRtcStatsReport()
        subscriber?.getRtcStatsReport()
    }

    private func show(_ error: OTError?) {
        if let error { numbers.text += "\(error.code): \(error.localizedDescription)\n" }
    }
}

extension CallQuality: OTSessionDelegate {
    func sessionDidConnect(_ session: OTSession) {
        let settings = OTPublisherSettings()
        settings.audioBitrate = 64_000
        settings.enableOpusDtx = true
        settings.publisherAudioFallbackEnabled = true
        publisher = OTPublisher(delegate: self, settings: settings)
        publisher?.networkStatsDelegate = self
        publisher?.audioLevelDelegate = self
        publisher?.rtcStatsReportDelegate = self
        if let blur = OTVideoTransformer(name: "BackgroundBlur", properties: #"{"radius":"High"}"#) {
            publisher?.videoTransformers = [blur]
        }
        guard let publisher else { return }
        var error: OTError?
        session.publish(publisher, error: &error)
        show(error)
    }

    func sessionDidDisconnect(_ session: OTSession) {}

    func session(_ session: OTSession, didFailWithError error: OTError) { show(error) }

    func session(_ session: OTSession, streamCreated stream: OTStream) {
        subscriber = OTSubscriber(stream: stream, delegate: self)
        subscriber?.networkStatsDelegate = self
        subscriber?.audioLevelDelegate = self
        subscriber?.rtcStatsReportDelegate = self
        subscriber?.captionsDelegate = self
        subscriber?.subscribeToCaptions = stream.hasCaptions
        guard let subscriber else { return }
        session.subscribe(subscriber, error: nil)
    }

    func session(_ session: OTSession, streamDestroyed stream: OTStream) {}

    func session(_ session: OTSession, archiveStartedWithId archiveId: String, name: String?) {
        numbers.text += "Recording \(name ?? archiveId)\n"
    }

    func session(_ session: OTSession, archiveStoppedWithId archiveId: String) { numbers.text += "Not recording\n" }
}

extension CallQuality: OTPublisherDelegate {
    func publisher(_ publisher: OTPublisherKit, didFailWithError error: OTError) { show(error) }

    func publisherVideoDisabled(_ publisher: OTPublisherKit, reason: OTPublisherVideoEventReason) {
        numbers.text += reason == .qualityChanged ? "The network is slow\n" : "The camera is off\n"
    }

    func publisherVideoEnabled(_ publisher: OTPublisherKit, reason: OTPublisherVideoEventReason) {}

    func publisherVideoDisableWarning(_ publisher: OTPublisherKit) {}

    func publisherVideoDisableWarningLifted(_ publisher: OTPublisherKit) {}
}

extension CallQuality: OTSubscriberDelegate {
    func subscriberDidConnect(toStream subscriber: OTSubscriberKit) {}

    func subscriber(_ subscriber: OTSubscriberKit, didFailWithError error: OTError) { show(error) }
}

extension CallQuality: OTPublisherKitNetworkStatsDelegate, OTPublisherKitAudioLevelDelegate {
    func publisher(
        _ publisher: OTPublisherKit, videoNetworkStatsUpdated stats: [OTPublisherKitVideoNetworkStats]
    ) {
        guard let sent = stats.first, sent.videoPacketsSent > 0 else { return }
        numbers.text += "\(100 * sent.videoPacketsLost / sent.videoPacketsSent) % lost\n"
    }

    func publisher(_ publisher: OTPublisherKit, audioLevelUpdated audioLevel: Float) {
        numbers.text += audioLevel > 0.5 ? "You are loud\n" : ""
    }
}

extension CallQuality: OTSubscriberKitNetworkStatsDelegate, OTSubscriberKitAudioLevelDelegate {
    func subscriber(
        _ subscriber: OTSubscriberKit, videoNetworkStatsUpdated stats: OTSubscriberKitVideoNetworkStats
    ) {
        let seconds = (stats.timestamp - bytes.time) / 1000
        // The counter of a new subscriber starts at 0.
        if bytes.count > 0, seconds > 0, stats.videoBytesReceived >= bytes.count {
            numbers.text += "\(Double(stats.videoBytesReceived - bytes.count) * 8 / seconds) bit/s\n"
        }
        bytes = (stats.timestamp, stats.videoBytesReceived)
    }

    func subscriber(_ subscriber: OTSubscriberKit, audioLevelUpdated audioLevel: Float) {}
}

extension CallQuality: OTPublisherKitRtcStatsReportDelegate, OTSubscriberKitRtcStatsReportDelegate {
    func publisher(_ publisher: OTPublisherKit, rtcStatsReport stats: [OTPublisherRtcStats]) {
        for report in stats { numbers.text += "\(report.connectionId): \(report.jsonArrayOfReports)\n" }
    }

    func subscriber(_ subscriber: OTSubscriberKit, rtcStatsReport jsonArrayOfReports: String) {
        numbers.text += jsonArrayOfReports
    }
}

extension CallQuality: OTSubscriberKitCaptionsDelegate {
    func subscriber(_ subscriber: OTSubscriberKit, caption text: String, isFinal: Bool) {
        if isFinal { numbers.text += text }
    }
}
