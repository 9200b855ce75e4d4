import Signaling
import Testing
import Wire

/// A client as small as one can be that resumes: `Link` on its side of the line, a session it joins, and a count in every
/// signal, by which loss and repetition are seen.
final class NetworkClient {
    let number: Int
    let identity: IdentityID
    private unowned let network: SimulatedNetwork

    private var socket: SocketID?
    private var isWelcome = false
    private var link = Link()
    private var secret: String?
    private(set) var connection = ConnectionID(high: 0, low: 0)
    /// How often this client began anew.
    private(set) var epoch = 0
    private(set) var said = 0
    private var asked: [UInt64: String] = [:]
    private var lastAsked: UInt64 = 0
    private var answered: Set<UInt64> = []
    private var isRefused = false
    /// The last count heard from each sender's epoch, in this client's present epoch.
    private(set) var heard: [String: Int] = [:]
    private(set) var resumes = 0
    private(set) var failures = 0

    init(number: Int, identity: IdentityID, on network: SimulatedNetwork) {
        (self.number, self.identity, self.network) = (number, identity, network)
    }

    // MARK: Coming

    func connect() {
        guard socket == nil else { return }
        let socket = network.connect(self)
        self.socket = socket
        isWelcome = false
        isRefused = false
        var hello = Hello()
        hello.resume = secret.map { Hello.Resume(secret: $0, received: link.received) }
        network.toServer(socket, Envelope(message: ClientMessage.hello(hello)).encode())
    }

    func lost(_ socket: SocketID) {
        guard socket == self.socket else { return }
        self.socket = nil
        network.comeBack(self)
    }

    /// Ten seconds without a welcome are enough.
    func loseHope(of socket: SocketID) {
        if socket == self.socket, !isWelcome { giveUpSocket() }
    }

    private func giveUpSocket() {
        guard let socket else { return }
        self.socket = nil
        network.abandon(socket)
        network.comeBack(self)
    }

    // MARK: Saying

    func speak() {
        guard isWelcome || socket == nil, epoch > 0 else { return }
        let data = "\(number)/\(epoch)/\(said)"
        said += 1
        ask(.session(.signal(.init(session: network.session, type: nil, data: data))))
    }

    private func ask(_ message: ClientMessage) {
        lastAsked += 1
        asked[lastAsked] = message.type
        let bytes = link.send { seq, ack in Envelope(seq: seq, ack: ack, message: message).encode() }
        if isWelcome, let socket { network.toServer(socket, bytes) }
    }

    // MARK: Hearing

    func receive(_ bytes: [UInt8], on socket: SocketID) {
        guard socket == self.socket else { return }
        guard let envelope = try? Envelope<ServerMessage>.decode(bytes) else {
            return network.fail("an unreadable message")
        }
        if let ack = envelope.ack { link.acknowledged(upTo: ack) }
        guard let seq = envelope.seq else { return receiveUnnumbered(envelope.message) }
        guard isWelcome else { return giveUpSocket() }
        switch link.receive(seq: seq) {
        case .duplicate: return
        // A fault of the server's or of something between: come back and have it said again.
        case .gap: return giveUpSocket()
        case .deliver: take(envelope.message)
        }
        if link.unacknowledgedReceipts >= 32 {
            network.toServer(socket, Envelope(ack: link.acknowledge(), message: ClientMessage.ack).encode())
        }
    }

    private func receiveUnnumbered(_ message: ServerMessage) {
        switch message {
        case .welcome(let welcome): receive(welcome)
        case .error(let error):
            if error.error.code == .resumeFailed {
                isRefused = true
            } else if error.error.code != .replaced {
                network.fail("\(number) was told \(error.error.code.rawValue)")
            }
        default: break
        }
    }

    private func receive(_ welcome: Welcome) {
        // Delivered twice: the first one counts.
        guard !isWelcome else { return }
        secret = welcome.resume.secret
        isWelcome = true
        guard welcome.resumed else { return startAfresh(welcome) }
        resumes += 1
        if welcome.connection != connection { network.fail("\(number) was resumed as another") }
        guard let missing = link.replay(after: welcome.received) else {
            return network.fail("\(number) cannot say again what the server lacks after \(welcome.received)")
        }
        for bytes in missing { if let socket { network.toServer(socket, bytes) } }
    }

    private func startAfresh(_ welcome: Welcome) {
        if epoch > 0 {
            failures += 1
            // An error lost on the way leaves the welcome to say it; both come in one breath.
            if !isRefused, network.weather.losses == 0 { network.fail("\(number) began anew and was not told why") }
            if welcome.connection == connection { network.fail("\(number) began anew under its old name") }
        }
        if welcome.state != Snapshot() || welcome.received != 0 { network.fail("a fresh start has a past") }
        connection = welcome.connection
        epoch += 1
        (link, said, lastAsked) = (Link(), 0, 0)
        (asked, answered, heard) = ([:], [], [:])
        ask(.session(.join(.init(session: network.session, token: network.token()))))
    }

    private func take(_ message: ServerMessage) {
        if let re = message.re {
            if !answered.insert(re).inserted { network.fail("\(number)'s request \(re) was answered twice") }
            guard let type = asked[re] else { return network.fail("\(number) never asked \(re)") }
            if let code = message.errorCode { network.fail("\(number)'s \(type) was refused: \(code.rawValue)") }
        }
        guard case .session(.signal(let signal)) = message, let parts = signal.data?.split(separator: "/"),
            parts.count == 3,
            let count = Int(parts[2])
        else { return }
        let sender = "\(parts[0])/\(parts[1])"
        if let last = heard[sender], count != last + 1 {
            network.fail("\(number) heard \(count) of \(sender) after \(last)")
        }
        heard[sender] = count
    }

    // MARK: At the end

    var isAtRest: Bool { socket != nil && isWelcome }
    var unanswered: [String] { asked.keys.sorted().filter { !answered.contains($0) }.compactMap { asked[$0] } }
    var sender: String { "\(number)/\(epoch)" }
}
