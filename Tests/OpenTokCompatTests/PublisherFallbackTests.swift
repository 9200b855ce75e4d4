import Confab
import Testing

@testable import OpenTokCompat

@Suite("The audio fallback of a publisher for OpenTok's classes")
@MainActor struct PublisherFallbackTests {
    @Test("the setting decides whether the video may stop", arguments: [true, false])
    func setting(isEnabled: Bool) throws {
        let settings = OTPublisherSettings()
        settings.publisherAudioFallbackEnabled = isEnabled
        let publisher = try #require(OTPublisher(delegate: nil, settings: settings))
        #expect(publisher.options.audioFallback == isEnabled)
    }

    @Test("a warning, its end, a stopped video and its return are reported")
    func events() throws {
        let heard = Heard()
        let publisher = try #require(OTPublisher(delegate: heard, settings: OTPublisherSettings()))
        for event in [MediaPublisher.Event.videoWarning(true), .videoWarning(false), .videoStopped, .videoResumed] {
            publisher.hear(event)
        }
        #expect(heard.calls == ["warning", "lifted", "off qualityChanged", "on qualityChanged"])
    }
}

@MainActor private final class Heard: OTPublisherDelegate {
    private(set) var calls: [String] = []

    func publisher(_ publisher: OTPublisherKit, didFailWithError error: OTError) {}
    func publisher(_ publisher: OTPublisher, didChangeCameraPosition position: OTCameraPosition) {}
    func publisherVideoDisableWarning(_ publisher: OTPublisherKit) { calls.append("warning") }
    func publisherVideoDisableWarningLifted(_ publisher: OTPublisherKit) { calls.append("lifted") }
    func publisherVideoDisabled(_ publisher: OTPublisherKit, reason: OTPublisherVideoEventReason) {
        calls.append("off \(reason)")
    }
    func publisherVideoEnabled(_ publisher: OTPublisherKit, reason: OTPublisherVideoEventReason) {
        calls.append("on \(reason)")
    }
}
