import Datagrams
import Foundation
import NIOConcurrencyHelpers
import RTC
import SFU
import Signaling
import Wire

/// Routed media: carries out what the rules ask for on a loop of its own, and tells them what happens there.
///
/// It owns the sockets and the loop's thread. What it is asked is done in the order of asking, and never waits for anything
/// that comes from the network. Invariant: after `stop` nothing is sent and no event is told.
final class MediaPlane: Sendable {
    private let inbox: MediaInbox
    /// Where clients send media.
    let port: Int
    let addresses: [IPAddress]
    let notes: [String]
    private let onEvent: @Sendable (MediaEvent) -> Void

    struct Settings: Sendable {
        var port: Int
        var address: IPAddress?
        var publicHost: String?
        /// This machine's addresses, likeliest to be reached first.
        var local: [IPAddress] = []
        /// poll(2) and sendto instead of what Linux has for many at once.
        var isPortable = false
    }

    /// Opens the sockets and starts the loop.
    /// - Parameter onEvent: called on any thread.
    /// - Throws: `MediaPlaneError`, with a sentence for whoever starts the server.
    init(_ settings: Settings, onEvent: @escaping @Sendable (MediaEvent) -> Void) throws {
        let addresses = try MediaAddresses(
            configured: settings.address, local: settings.local, publicHost: settings.publicHost, port: settings.port
        )
        let opened = try MediaSockets(addresses, port: settings.port)
        port = opened.port
        self.addresses = addresses.advertised
        notes = addresses.notes + opened.notes
        self.onEvent = onEvent
        let certificate = try Self.certificate()
        let inbox = try MediaInbox { events in for event in events { onEvent(MediaEvent(event)) } }
        self.inbox = inbox
        let (sockets, isPortable) = (opened.sockets, settings.isPortable)
        let router = RouterSettings(candidates: opened.candidates, clockOrigin: .monotonicOrigin)
        let thread = Thread {
            let loop = MediaLoop(inbox: inbox, sockets: sockets, portable: isPortable)
            loop.run { sink in
                Router(
                    settings: router, certificate: certificate, sink: sink, generator: SystemRandomNumberGenerator()
                )
            }
        }
        thread.name = "confab-media"
        thread.start()
    }

    /// One for all connections: who somebody is is shown by the description that names its fingerprint.
    private static func certificate() throws(MediaPlaneError) -> DTLSCertificate {
        guard let certificate = DTLSCertificate.make() else {
            throw MediaPlaneError("OpenSSL makes no certificate for media. Is its version 3.0 or newer?")
        }
        return certificate
    }

    /// OpenSSL's version, for `/health`.
    static var openSSLVersion: String { OpenSSLVersion.text }

    func stop() { inbox.finish() }

    var counters: (router: RouterCounters, lost: UInt64) { inbox.counters }

    func perform(_ command: MediaCommand) {
        let onEvent = onEvent
        inbox.perform { router in
            switch command {
            case .offer(let client, let re, let side, let sdp):
                onEvent(router.answer(client, re: re, side, sdp))
            case .close(let client, let side): router.close(Key(client), Side(side))
            case .leave(let client): router.leave(Key(client))
            case .publish(let stream, let session, let client, let mids, let audio, let video):
                router.publish(
                    Key(stream), session: session.text, client: Key(client), mids: Mids(mids), audio: audio,
                    video: video
                )
            case .update(let stream, let audio, let video): router.update(Key(stream), audio: audio, video: video)
            case .unpublish(let stream): router.unpublish(Key(stream))
            case .subscribe(let stream, _, let client, let mids, let audio, let video, let preference):
                router.subscribe(
                    Key(stream), client: Key(client), mids: Mids(mids), audio: audio, video: video,
                    preferring: SFU.VideoPreference(preference)
                )
            case .unsubscribe(let stream, let client): router.unsubscribe(Key(stream), client: Key(client))
            }
        }
    }
}

/// A media plane that starts before there is anybody to tell its events to.
final class RunningMedia: Sendable {
    typealias Receiver = @Sendable (MediaEvent) -> Void

    let plane: MediaPlane
    private let receiver: NIOLockedValueBox<Receiver?>

    init(_ settings: MediaPlane.Settings) throws {
        let receiver = NIOLockedValueBox<Receiver?>(nil)
        self.receiver = receiver
        // Nothing happens before the receiver is set: nobody has asked for anything.
        plane = try MediaPlane(settings) { event in receiver.withLockedValue { $0 }?(event) }
    }

    /// - Parameter receiver: called on any thread.
    func deliver(to receiver: @escaping Receiver) { self.receiver.withLockedValue { $0 = receiver } }
}

extension MediaPlane.Settings {
    init(_ configuration: ConfabConfiguration) throws {
        port = configuration.media.port
        address = configuration.media.address
        publicHost = configuration.publicURL.flatMap { URL(string: $0)?.host }
        local = try lanAddresses().map(\.address)
    }
}

extension Router {
    fileprivate func answer(_ client: ConnectionID, re: UInt64, _ side: MediaSide, _ sdp: String) -> MediaEvent {
        do throws(SDPError) {
            let answer = try offer(Key(client), Side(side), sdp: sdp, now: .monotonic)
            return .answered(client, re: re, side, sdp: answer)
        } catch {
            return .refused(client, re: re, WireError(.descriptionInvalid, "\(error)"))
        }
    }
}

// MARK: The same things in the words of the rules and of the router

extension Key {
    init(_ id: some Identifier128) { self.init(high: id.high, low: id.low) }
}

extension Side {
    init(_ side: MediaSide) { self = side == .send ? .send : .receive }
}

extension MediaSide {
    init(_ side: Side) { self = side == .send ? .send : .receive }
}

extension Mids {
    init(_ mids: MediaMids) { self.init(audio: mids.audio, video: mids.video) }
}

extension SFU.VideoPreference {
    init(_ preference: Wire.VideoPreference) {
        self.init(width: preference.width, height: preference.height, frameRate: preference.frameRate)
    }
}

extension MediaEvent {
    init(_ event: RouterEvent) {
        switch event {
        case .failed(let client, let side, let failure):
            self = .closed(ConnectionID(client), MediaSide(side), WireError(failure))
        case .connected(let client, let side, let isConnected):
            self = .connected(ConnectionID(client), MediaSide(side), isConnected)
        case .videoPaused(let stream, let session, let client, let paused, let reason):
            self = .videoPaused(
                StreamID(stream), SessionID(session) ?? .unset, subscriber: ConnectionID(client), paused: paused,
                reason: reason == .slow ? .slow : .codec
            )
        case .layersWanted(let stream, let session, let client, let rids):
            self = .layersWanted(
                StreamID(stream), SessionID(session) ?? .unset, publisher: ConnectionID(client), rids: rids
            )
        case .speaking(let session, let stream):
            self = .speaking(SessionID(session) ?? .unset, stream.map { StreamID($0) })
        }
    }
}

extension Identifier128 {
    init(_ key: Key) { self.init(high: key.high, low: key.low) }
}

extension WireError {
    init(_ failure: PeerFailure) {
        switch failure {
        case .fingerprint:
            self.init(
                .fingerprintMismatch,
                "The certificate shown is not the one that the description names; make a new connection."
            )
        case .handshake:
            self.init(.dtlsFailed, "Encryption could not be agreed on; make a new connection.", retryable: true)
        }
    }
}
