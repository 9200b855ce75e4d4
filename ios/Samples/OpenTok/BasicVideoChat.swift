import Foundation
import OpenTokCompat
import UIKit

/// A call of two people: publishes the camera, and shows the other person's video above the self-view.
final class BasicVideoChat: UIViewController {
    private let apiKey = "100"
    private let sessionId = "the id that your server created"
    private let token = "the token that your server made"

    private lazy var session: OTSession = OTSession(apiKey: apiKey, sessionId: sessionId, delegate: self)!
    private lazy var publisher: OTPublisher = {
        let settings = OTPublisherSettings()
        settings.name = "Camera"
        settings.cameraResolution = .high
        settings.cameraFrameRate = .rate30FPS
        return OTPublisher(delegate: self, settings: settings)!
    }()
    private var subscriber: OTSubscriber?
    private let status = UILabel(frame: .zero)

    override func viewDidLoad() {
        super.viewDidLoad()
        status.frame = view.bounds
        view.addSubview(status)
        var error: OTError?
        defer { show(error) }
        session.connect(withToken: token, error: &error)
    }

    override func viewWillDisappear(_ animated: Bool) {
        super.viewWillDisappear(animated)
        session.disconnect(nil)
    }

    private func show(_ error: OTError?) {
        guard let error else { return }
        status.text = error.localizedDescription
    }

    private func place(_ picture: UIView?, _ row: CGFloat) {
        guard let picture else { return }
        let height = view.bounds.height / 2
        picture.frame = CGRect(x: 0, y: row * height, width: view.bounds.width, height: height)
        view.addSubview(picture)
    }

    private func forget(_ stream: OTStream) {
        guard subscriber?.stream?.streamId == stream.streamId else { return }
        subscriber?.view?.removeFromSuperview()
        subscriber = nil
    }
}

extension BasicVideoChat: OTSessionDelegate {
    func sessionDidConnect(_ session: OTSession) {
        var error: OTError?
        session.publish(publisher, error: &error)
        show(error)
        place(publisher.view, 1)
    }

    func sessionDidDisconnect(_ session: OTSession) { status.text = "Disconnected" }

    func session(_ session: OTSession, didFailWithError error: OTError) { show(error) }

    func session(_ session: OTSession, streamCreated stream: OTStream) {
        guard subscriber == nil, let subscriber = OTSubscriber(stream: stream, delegate: self) else { return }
        self.subscriber = subscriber
        var error: OTError?
        session.subscribe(subscriber, error: &error)
        show(error)
    }

    func session(_ session: OTSession, streamDestroyed stream: OTStream) { forget(stream) }

    func sessionDidBeginReconnecting(_ session: OTSession) { status.text = "Reconnecting" }

    func sessionDidReconnect(_ session: OTSession) { status.text = "Connected" }
}

extension BasicVideoChat: OTPublisherDelegate {
    func publisher(_ publisher: OTPublisherKit, didFailWithError error: OTError) { show(error) }

    func publisher(_ publisher: OTPublisherKit, streamCreated stream: OTStream) {
        status.text = "Published at \(stream.creationTime)"
    }

    func publisher(_ publisher: OTPublisherKit, streamDestroyed stream: OTStream) {
        (publisher as? OTPublisher)?.view?.removeFromSuperview()
    }
}

extension BasicVideoChat: OTSubscriberDelegate {
    func subscriberDidConnect(toStream subscriber: OTSubscriberKit) { place(self.subscriber?.view, 0) }

    func subscriber(_ subscriber: OTSubscriberKit, didFailWithError error: OTError) { show(error) }

    func subscriberVideoDataReceived(_ subscriber: OTSubscriber) { subscriber.viewScaleBehavior = .fit }
}
