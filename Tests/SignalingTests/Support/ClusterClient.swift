import Cluster
import Signaling
import TestSupport
import Testing
import Wire

/// A client of a simulated cluster. It follows redirects as the SDKs do: it leaves its node, connects to the node that the error
/// names, and repeats what it wanted.
final class ClusterClient {
    /// What the client wants to be in.
    enum Wish: Equatable {
        case nothing
        case room(RoomName)
        case chat
        case session(SessionID, token: String)
        case request(ClientMessage)
    }

    private unowned let world: ClusterWorld
    /// Whether the person may have blocked another, so that two strangers need not be matched.
    var hasBlocks: Bool { world.shelf.archive.record(of: identity).blocked.isEmpty == false }
    let identity: IdentityID
    private(set) var guest: Guest?
    private(set) weak var node: ClusterNode?
    private(set) var wish = Wish.nothing
    /// The number of the request for the wish; nil if it was not sent or has been answered.
    private var asked: UInt64?
    /// When the client connects again, and to which node; the balancer chooses it if nil.
    private(set) var connectAt: Timestamp?
    private var target: String?
    /// The redirects since the wish.
    private(set) var redirects = 0
    private(set) var maxRedirects = 0
    /// The answers to requests that are not redirects, and the errors without a request.
    private(set) var news: [ServerMessage] = []
    /// The sentences that the user has seen.
    private(set) var failures: [WireError] = []
    private(set) var isInRoom = false
    /// The latest call that has not ended; nil if there is none, or if no media can cross between the nodes.
    private(set) var call: CallID?
    /// What the client says about its person after each welcome, as pages do; nil if it says nothing.
    var appearance: Appearance?
    /// When the client wished for a chat, and how long it took until it had the first.
    private var wishedAt = Timestamp(milliseconds: 0)
    private(set) var firstWait: Duration?
    /// Since when the client has been waiting for a stranger without a break; nil if it is not.
    private(set) var waitingSince: Timestamp?

    init(in world: ClusterWorld, as identity: IdentityID) { (self.world, self.identity) = (world, identity) }

    var isConnected: Bool { guest?.socket != nil }
    var isMatched: Bool { guest?.match != nil }

    // MARK: Connecting

    /// Connects now: to this node, or to any that is ready. Tries again later if there is none.
    ///
    /// - Parameter name: the node that the client asks for. The balancer chooses another one if that node does not answer.
    func connect(to chosen: ClusterNode? = nil, at name: String? = nil) {
        connectAt = nil
        guard let node = chosen ?? world.ready.randomElement(using: &world.random), node.isLive else {
            return connectLater(.seconds(1))
        }
        self.node = node
        let guest = Guest(on: node.stage, as: identity)
        guest.at = name
        self.guest = guest
        (asked, isInRoom, waitingSince, call) = (nil, false, nil, nil)
        guest.arrive()
        if let appearance { guest.say(.presence(.appear(appearance))) }
        ask()
    }

    private func connectLater(_ pause: Duration, at name: String? = nil) {
        (connectAt, target) = (world.now + pause, name)
    }

    func connectIfDue() {
        guard let at = connectAt, at <= world.now else { return }
        let node = target.flatMap { world[$0] }
        connect(to: node?.isLive == true ? node : nil, at: target)
    }

    /// The node was killed. The client does not learn when it would have answered.
    func lostNode() {
        guest?.lostServer()
        let name = node?.name
        (node, waitingSince, isInRoom) = (nil, nil, false)
        connectLater(.milliseconds(Int.random(in: 100...300, using: &world.random)), at: name)
    }

    /// Closes the page.
    func leave() {
        guest?.leave()
        (guest, node, connectAt) = (nil, nil, nil)
        world.forget(self)
        world.settle()
    }

    /// Loses the connection. The server waits for the client to resume.
    func drop() {
        guest?.drop()
        (waitingSince, isInRoom) = (nil, false)
    }

    func reconnect(to node: ClusterNode? = nil) {
        connect(to: node)
        world.settle()
    }

    // MARK: Wishes

    func want(_ wish: Wish) {
        (self.wish, redirects, asked) = (wish, 0, nil)
        (wishedAt, firstWait) = (world.now, nil)
        if isConnected { ask() }
        world.settle()
    }

    /// Nothing happens after this but what clients still have to do. Redirects are counted again.
    func beginCalm() { redirects = 0 }

    private func ask() {
        switch wish {
        case .nothing: return
        case .room(let name):
            asked = guest?.say(.room(.join(RoomVerb.Join(name: name, displayName: "Ada"))))
        case .chat: asked = guest?.say(.roulette(.start(.init())))
        case .session(let session, let token):
            asked = guest?.say(.session(.join(.init(session: session, token: token))))
        case .request(let message): asked = guest?.say(message)
        }
    }

    func say(_ message: ClientMessage) {
        guest?.say(message)
        world.settle()
    }

    /// Appears now, and after each welcome.
    func appear(_ appearance: Appearance) {
        self.appearance = appearance
        say(.presence(.appear(appearance)))
    }

    func endWish() { (wish, asked, waitingSince, isInRoom) = (.nothing, nil, nil, false) }

    // MARK: Reading

    /// Reads what has arrived. Returns whether that caused anything.
    func read() -> Bool {
        guard let guest, connectAt == nil else { return false }
        var hasSaid = false
        for message in guest.take() {
            if hear(message) { return true }
            if takePart(message, guest) { hasSaid = true }
        }
        return guest.socket == nil && guest.closeCode != nil ? closed(guest) : hasSaid
    }

    /// If media can cross between the nodes, joins the session of each chat and call, publishes there, and subscribes to the other
    /// person's stream. Returns whether the client has said anything.
    private func takePart(_ message: ServerMessage, _ guest: Guest) -> Bool {
        guard world.spans else { return false }
        switch message {
        case .roulette(.matched(let matched)): join(matched.publish, guest)
        case .session(.joined(let joined)):
            var publish = SessionVerb.Publish()
            (publish.session, publish.mids) = (joined.session, MediaMids(audio: "0", video: "1"))
            guest.say(.session(.publish(publish)))
            for stream in joined.streams { subscribe(to: stream.id, in: joined.session, guest) }
        case .session(.streamCreated(let created)): subscribe(to: created.stream.id, in: created.session, guest)
        case .call(let news): return takePart(in: news, guest)
        default: return false
        }
        return true
    }

    private func takePart(in news: CallNotice, _ guest: Guest) -> Bool {
        switch news {
        case .incoming(let incoming):
            call = incoming.call
            guard world.answersCalls, world.chance(70) else { return false }
            guest.say(.call(.accept(.init(call: incoming.call, video: true))))
            return true
        case .placed(let placed): call = placed.call
        case .accepted(let accepted):
            call = accepted.call
            join(accepted.admission, guest)
            return true
        case .ended(let ended): if call == ended.call { call = nil }
        default: break
        }
        return false
    }

    private func join(_ admission: Admission, _ guest: Guest) {
        guest.say(.session(.join(.init(session: admission.session, token: admission.token))))
    }

    private func subscribe(to stream: StreamID, in session: SessionID, _ guest: Guest) {
        let mids = MediaMids(audio: "2", video: "3")
        guest.say(
            .session(.subscribe(.init(session: session, stream: stream, audio: true, video: true, mids: mids))))
    }

    private func hear(_ message: ServerMessage) -> Bool {
        if case .error(let failure) = message, failure.error.code == .elsewhere, failure.error.at != nil {
            guard failure.re == asked || failure.re == nil else { return false }
            guest?.leave()
            follow(failure.error)
            return true
        }
        if message.re != nil, message.re == asked { answered(message) }
        switch message {
        // Another device of the person has taken its place.
        case .room(.ended): isInRoom = false
        // An answer that arrives after the client has stopped is followed by that of the stop.
        case .roulette(.waiting(let waiting)) where wish != .nothing:
            // After many skips, the client enters the queue only later.
            waitingSince = waiting.retryAfter.map { world.now + $0 } ?? waitingSince ?? world.now
        case .roulette(.matched):
            waitingSince = nil
            firstWait = firstWait ?? (world.now - wishedAt)
        case .roulette(.ended(let ended)):
            let searches = wish == .chat && ended.reason != .stopped
            waitingSince = searches ? waitingSince ?? world.now : nil
        case .error(let failure) where failure.re == nil && failure.error.code == .elsewhere: endWish()
        default: break
        }
        news.append(message)
        if news.count > 20 { news.removeFirst() }
        return false
    }

    private func answered(_ message: ServerMessage) {
        asked = nil
        maxRedirects = max(maxRedirects, redirects)
        switch message {
        case .error(let failure):
            failures.append(failure.error)
            if failure.error.retryable, failure.error.code == .clusterUnavailable { return }
            wish = .nothing
        case .room(.joined(_)): isInRoom = true
        default: if case .request = wish { wish = .nothing }
        }
    }

    private func follow(_ error: WireError) {
        redirects += 1
        waitingSince = nil
        connectLater(.milliseconds(Int.random(in: 20...120, using: &world.random)), at: error.at)
    }

    /// The server has closed the socket.
    private func closed(_ guest: Guest) -> Bool {
        (isInRoom, waitingSince) = (false, nil)
        let error = guest.refusals.last
        self.guest = nil
        node = nil
        if let error, error.code == .elsewhere, error.at != nil {
            // What the client wanted cannot be had now, because another device keeps the person elsewhere.
            if !error.retryable {
                failures.append(error)
                wish = .nothing
            }
            follow(error)
        } else {
            connectLater(.milliseconds(Int.random(in: 300...1000, using: &world.random)))
        }
        return true
    }
}
