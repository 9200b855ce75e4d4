import Cluster
import Signaling
import Wire

/// Tracks the state of a media plane after each command, and finds invalid commands.
struct MediaLedger {
    struct Routed: Equatable {
        var session: SessionID
        var publisher: ConnectionID
        var mids: MediaMids
        var audio: Bool
        var video: Bool
        var alwaysHeard: Bool
        var subscribers: [ConnectionID: Subscription] = [:]
    }

    struct Subscription: Equatable {
        var mids: MediaMids
        var audio: Bool
        var video: Bool
    }

    /// The node of the media plane; nil without a cluster.
    var tag: NodeTag?
    private(set) var streams: [StreamID: Routed] = [:]
    /// The streams that have ended. Their IDs must never be reused. Only those of this node: others are forgotten while nobody here is in
    /// their session.
    private var past: Set<StreamID> = []
    private var left: Set<ConnectionID> = []

    var subscriptionCount: Int { streams.values.reduce(0) { $0 + $1.subscribers.count } }

    /// Applies a command. Returns a description of the fault if the command is invalid.
    mutating func note(_ command: MediaCommand) -> String? {
        switch command {
        case .offer(let client, _, _, _, _), .close(let client, _), .estimate(let client, _):
            return naming(client, command)
        case .leave(let client): return leave(client)
        case .publish(let stream, let session, let client, let mids, let audio, let video, let alwaysHeard):
            if let fault = naming(client, command) { return fault }
            guard !past.contains(stream) else { return "\(stream) was unpublished and is published again" }
            if let known = streams[stream], (known.session, known.publisher) != (session, client) {
                return "\(stream) suddenly belongs to another client"
            }
            let subscribers = streams[stream]?.subscribers ?? [:]
            streams[stream] = Routed(
                session: session, publisher: client, mids: mids, audio: audio, video: video, alwaysHeard: alwaysHeard,
                subscribers: subscribers)
        case .update(let stream, let client, let audio, let video):
            guard let known = streams[stream] else { return "\(stream) is changed but does not exist" }
            guard known.publisher == client else {
                return "\(stream) is changed by \(client), which does not publish it"
            }
            guard (known.audio, known.video) != (audio, video) else { return "\(stream) is changed to itself" }
            streams[stream]?.audio = audio
            streams[stream]?.video = video
        case .unpublish(let stream, let client):
            guard let known = streams.removeValue(forKey: stream) else { return "\(stream) is unpublished but missing" }
            guard known.publisher == client else {
                return "\(stream) is unpublished by \(client), which does not publish it"
            }
            if tag.flatMap({ client.tag(unless: $0) }) == nil { past.insert(stream) }
        case .subscribe(let stream, let session, let client, let mids, let audio, let video, _):
            if let fault = naming(client, command) { return fault }
            guard streams[stream]?.session == session else { return "\(stream) is not in \(session)" }
            guard !mids.isEmpty else { return "\(stream) is subscribed to without a transceiver" }
            streams[stream]?.subscribers[client] = Subscription(mids: mids, audio: audio, video: video)
        case .unsubscribe(let stream, let client):
            guard streams[stream]?.subscribers.removeValue(forKey: client) != nil else {
                return "\(client) has no subscription of \(stream) to end"
            }
        }
        return nil
    }

    private func naming(_ client: ConnectionID, _ command: MediaCommand) -> String? {
        left.contains(client) ? "\(client) is used after it left: \(command)" : nil
    }

    private mutating func leave(_ client: ConnectionID) -> String? {
        guard left.insert(client).inserted else { return "\(client) left twice" }
        if streams.values.contains(where: { $0.publisher == client }) { return "\(client) left a stream behind" }
        if streams.values.contains(where: { $0.subscribers[client] != nil }) {
            return "\(client) left but still subscribes"
        }
        return nil
    }
}
