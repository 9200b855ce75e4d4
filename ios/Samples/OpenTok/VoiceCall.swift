import AVFoundation
import Foundation
import OpenTokCompat
import UIKit

/// A call without video, with a custom audio device supplied by this application.
final class VoiceCall: UIViewController {
    private let device = Silence()
    private var session: OTSession?

    func join(_ apiKey: String, _ sessionId: String, _ token: String) {
        OTAudioDeviceManager.setAudioDevice(device)
        let manager = OTAudioDeviceManager.currentAudioSessionManager()
        manager?.enableCallingServicesMode()
        manager?.preconfigureAudioSessionForCall(withMode: .voiceChat)
        manager?.audioSessionDidActivate(AVAudioSession.sharedInstance())
        session = OTSession(apiKey: apiKey, sessionId: sessionId, delegate: self)
        session?.connect(withToken: token, error: nil)
    }
}

extension VoiceCall: OTSessionDelegate {
    func sessionDidConnect(_ session: OTSession) {
        guard let publisher = Microphone(delegate: nil, settings: OTPublisherKitSettings()) else { return }
        session.publish(publisher, error: nil)
    }

    func sessionDidDisconnect(_ session: OTSession) {}

    func session(_ session: OTSession, didFailWithError error: OTError) { print(error.localizedDescription) }

    func session(_ session: OTSession, streamCreated stream: OTStream) {
        guard let subscriber = OTSubscriberKit(stream: stream, delegate: nil) else { return }
        subscriber.subscribeToVideo = false
        session.subscribe(subscriber, error: nil)
    }

    func session(_ session: OTSession, streamDestroyed stream: OTStream) {}
}

/// A publisher without video.
final class Microphone: OTPublisherKit {
    override init?(delegate: (any OTPublisherKitDelegate)?, settings: OTPublisherKitSettings) {
        settings.videoTrack = false
        super.init(delegate: delegate, settings: settings)
    }
}

/// An audio device that plays and captures nothing.
private final class Silence: NSObject {
    private var bus: (any OTAudioBus)?
    private var (renders, captures) = (false, false)
    private let format = OTAudioFormat()
}

extension Silence: OTAudioDevice {
    func setAudioBus(_ audioBus: (any OTAudioBus)?) -> Bool {
        bus = audioBus
        (format.sampleRate, format.numChannels) = (16_000, 1)
        return true
    }

    func captureFormat() -> OTAudioFormat { format }
    func renderFormat() -> OTAudioFormat { format }
    func renderingIsAvailable() -> Bool { true }
    func initializeRendering() -> Bool { true }
    func renderingIsInitialized() -> Bool { true }
    func startRendering() -> Bool {
        renders = true
        var samples = [Int16](repeating: 0, count: 160)
        return samples.withUnsafeMutableBytes { bytes in
            bytes.baseAddress.map { bus?.readRenderData($0, numberOfSamples: 160) == 160 } ?? false
        }
    }
    func stopRendering() -> Bool {
        renders = false
        return true
    }
    func isRendering() -> Bool { renders }
    func estimatedRenderDelay() -> UInt16 { 0 }
    func captureIsAvailable() -> Bool { true }
    func initializeCapture() -> Bool { true }
    func captureIsInitialized() -> Bool { true }
    func startCapture() -> Bool {
        captures = true
        var samples = [Int16](repeating: 0, count: 160)
        samples.withUnsafeMutableBytes { bytes in
            if let start = bytes.baseAddress { bus?.writeCaptureData(start, numberOfSamples: 160) }
        }
        return true
    }
    func stopCapture() -> Bool {
        captures = false
        return true
    }
    func isCapturing() -> Bool { captures }
    func estimatedCaptureDelay() -> UInt16 { 0 }
}
