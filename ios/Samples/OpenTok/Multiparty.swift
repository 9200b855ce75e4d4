import AVFoundation
import Foundation
import OpenTokCompat
import UIKit

/// A call of several people: everyone in one row, with buttons to mute the local microphone, to mute everyone else, and
/// to switch the camera.
final class Multiparty: UIViewController {
    private var session: OTSession?
    private var publisher: OTPublisher?
    private var subscribers: [String: OTSubscriber] = [:]
    private let row = UIStackView(arrangedSubviews: [])

    func join(_ apiKey: String, _ sessionId: String, _ token: String) {
        guard let session = OTSession(apiKey: apiKey, sessionId: sessionId, delegate: self) else { return }
        self.session = session
        var error: OTError?
        session.connect(withToken: token, error: &error)
        if let error { print("\(error.domain) \(error.code): \(error.localizedDescription)") }
    }

    override func viewDidLoad() {
        super.viewDidLoad()
        row.frame = view.bounds
        row.distribution = .fillEqually
        view.addSubview(row)
        let mute = UIAction(title: "Mute") { [weak self] _ in self?.publisher?.publishAudio.toggle() }
        row.addArrangedSubview(UIButton(type: .system, primaryAction: mute))
        let silence = UIAction(title: "Silence") { [weak self] _ in self?.silence() }
        row.addArrangedSubview(UIButton(type: .system, primaryAction: silence))
        let swap = UIAction(title: "Swap cameras") { [weak self] _ in self?.swapCameras() }
        row.addArrangedSubview(UIButton(type: .system, primaryAction: swap))
    }

    private func swapCameras() {
        if publisher?.cameraPosition == .front {
            publisher?.cameraPosition = .back
        } else {
            publisher?.cameraPosition = .front
        }
    }

    private func silence() {
        for subscriber in subscribers.values {
            subscriber.subscribeToAudio = false
            subscriber.audioVolume = 0
        }
        guard session?.capabilities?.canForceMute ?? false else { return }
        session?.forceMuteAll(publisher?.stream.map { [$0] }, error: nil)
    }

    private func remove(_ streamId: String) {
        guard let subscriber = subscribers.removeValue(forKey: streamId) else { return }
        subscriber.view?.removeFromSuperview()
        session?.unsubscribe(subscriber, error: nil)
    }
}

extension Multiparty: OTSessionDelegate {
    func sessionDidConnect(_ session: OTSession) {
        let settings = OTPublisherSettings()
        settings.cameraResolution = .low
        guard let publisher = OTPublisher(delegate: self, settings: settings) else { return }
        self.publisher = publisher
        session.publish(publisher, error: nil)
        if let picture = publisher.view { row.addArrangedSubview(picture) }
    }

    func sessionDidDisconnect(_ session: OTSession) { for id in Array(subscribers.keys) { remove(id) } }

    func session(_ session: OTSession, didFailWithError error: OTError) {
        switch OTSessionErrorCode(rawValue: error.code) {
        case .authorizationFailure: print("Ask the server for a new token")
        case .connectionDropped: print("The connection is lost")
        default: print(error.localizedDescription)
        }
    }

    func session(_ session: OTSession, streamCreated stream: OTStream) {
        guard let subscriber = OTSubscriber(stream: stream, delegate: self) else { return }
        subscribers[stream.streamId] = subscriber
        subscriber.preferredResolution = CGSize(width: 352, height: 288)
        subscriber.preferredFrameRate = 15
        session.subscribe(subscriber, error: nil)
        if let picture = subscriber.view { row.addArrangedSubview(picture) }
    }

    func session(_ session: OTSession, streamDestroyed stream: OTStream) { remove(stream.streamId) }

    func session(_ session: OTSession, muteForced info: OTMuteForcedInfo) {
        print(info.active ? "Everyone is muted" : "Everyone may speak")
    }
}

extension Multiparty: OTPublisherDelegate {
    func publisher(_ publisher: OTPublisherKit, didFailWithError error: OTError) { print(error) }

    func muteForced(_ publisher: OTPublisherKit) { print("A moderator muted you") }

    func publisher(_ publisher: OTPublisher, didChangeCameraPosition position: AVCaptureDevice.Position) {
        print(position == .front ? "You see yourself" : "You see what is before you")
    }
}

extension Multiparty: OTSubscriberDelegate {
    func subscriberDidConnect(toStream subscriber: OTSubscriberKit) {}

    func subscriber(_ subscriber: OTSubscriberKit, didFailWithError error: OTError) { print(error) }

    func subscriberVideoDisabled(_ subscriber: OTSubscriberKit, reason: OTSubscriberVideoEventReason) {
        print(reason == .qualityChanged ? "The network is slow" : "No video")
    }

    func subscriberVideoEnabled(_ subscriber: OTSubscriberKit, reason: OTSubscriberVideoEventReason) {}

    func subscriberVideoDisableWarning(_ subscriber: OTSubscriberKit) {}

    func subscriberVideoDisableWarningLifted(_ subscriber: OTSubscriberKit) {}

    func subscriberDidDisconnect(fromStream subscriber: OTSubscriberKit) {}

    func subscriberDidReconnect(toStream subscriber: OTSubscriberKit) {}
}
