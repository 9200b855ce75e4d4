import CoreMetrics
import Logging
import NIOCore
import Signaling
import Wire

/// A Socket.IO connection of the gateway. It feeds the state machine with the transports' events and carries out its outputs.
/// Used only on the gateway's event loop.
final class SocketIOSession: GatewayConnection, RunnerSocket, WebSocketUser {
    /// Sends packets as the response to a poll.
    typealias Responder = ([[UInt8]]) -> Void

    /// The secret id of the connection, which is part of URLs.
    let id: String
    private(set) var address: IPAddress
    var group = 0
    var slot: AddressBudgets.Slot?
    var excess: Budget?
    private let directory: SocketIODirectory
    private var gateway: Gateway { directory.gateway }
    private var connection: any SocketIOMachine
    private var socket: SocketID?
    private var webSocket: WebSocketHandler?
    private var polls: [SocketIOConnection.PollID: Responder] = [:]
    private var lastPoll: UInt64 = 0
    private(set) var hasOpened = false
    private var timer: (at: Timestamp, task: Scheduled<Void>)?
    private var flushing = Flushing.immediate

    /// When to flush. A payload may contain hundreds of packets, and the output of each would cause a flush, which is
    /// a system call. The outputs are therefore flushed together after the last packet.
    private enum Flushing {
        case immediate
        /// Outputs are being carried out, and no flush is needed so far.
        case deferred
        /// Flush after all outputs are carried out.
        case due
    }

    /// Creates a connection of Socket.IO 0.9.
    convenience init(id: String, address: IPAddress, directory: SocketIODirectory) {
        let gateway = directory.gateway
        let connection = SocketIOConnection(
            settings: SocketIOConnection.Settings(gateway.configuration), now: gateway.runner.now)
        self.init(id: id, connection, address: address, directory: directory)
    }

    init(id: String, _ connection: any SocketIOMachine, address: IPAddress, directory: SocketIODirectory) {
        (self.id, self.connection, self.address, self.directory) = (id, connection, address, directory)
        schedule()
    }

    /// The state machine of a connection of Engine.IO; nil for Socket.IO 0.9.
    var engine: EngineIOConnection? { connection as? EngineIOConnection }

    // MARK: Transports

    var hasWebSocket: Bool { webSocket != nil }

    /// Moves the connection to the client's new address. Afterwards, the budgets and bans of the new address block
    /// apply, and reports contain that block.
    func move(to address: IPAddress) {
        self.address = address
        if let socket { gateway.runner.submit(.moved(socket, address: gateway.limitingText(address))) }
        gateway.move(self)
    }

    func nextPoll() -> SocketIOConnection.PollID {
        lastPoll += 1
        return SocketIOConnection.PollID(rawValue: lastPoll)
    }

    /// Adds a poll, which waits for packets.
    ///
    /// - Parameter responder: Called at most once, possibly before this function returns. Not called after `lost`.
    func poll(_ poll: SocketIOConnection.PollID, _ responder: @escaping Responder) {
        polls[poll] = responder
        handle(.polled(poll))
        queueChanged()
    }

    /// Called when a request was refused because its address exceeded its budget.
    func overBudget() { handle(.refused) }

    /// Called when the poll's connection failed, before or after the response.
    func lost(_ poll: SocketIOConnection.PollID) {
        polls[poll] = nil
        handle(.pollLost(poll))
    }

    func posted(_ bytes: [UInt8]) {
        gateway.metrics.received.increment()
        handle(.received(bytes))
    }

    /// Called with the packets of a request of Engine.IO.
    func posted(_ packets: [EngineIOPacket]) {
        gateway.metrics.received.increment()
        handle(.packets(packets))
    }

    /// Called when the body of a request of Engine.IO could not be parsed.
    func postedUnreadable() {
        gateway.metrics.malformed.increment()
        handle(.unreadable)
    }

    /// Called when a second poll was refused.
    func overlapped() { handle(.overlapped) }

    func disconnect() { handle(.disconnectRequested) }

    // MARK: WebSocket (WebSocketUser)

    func opened(_ webSocket: WebSocketHandler) {
        // Replace the old WebSocket before closing it, so that `disconnected` ignores it.
        let old = self.webSocket
        self.webSocket = webSocket
        old?.close(.normal, "")
        handle(.webSocketOpened)
        if connection.isOver { webSocket.close(.normal, "") }
    }

    func received(_ bytes: [UInt8], on webSocket: WebSocketHandler) {
        guard webSocket === self.webSocket else { return }
        guard String(validating: bytes, as: UTF8.self) != nil else {
            return protocolViolation(CloseCode(rawValue: 1007), "The message is not valid UTF-8.", on: webSocket)
        }
        posted(bytes)
    }

    var acceptsBinary: Bool { engine != nil }

    func receivedBinary(_ bytes: [UInt8], on webSocket: WebSocketHandler) {
        guard webSocket === self.webSocket else { return }
        gateway.metrics.received.increment()
        handle(.receivedBinary(bytes))
    }

    func receivedFrame(_ length: Int, on webSocket: WebSocketHandler) {
        guard webSocket === self.webSocket else { return }
        handle(gateway.countMessage(of: self, bytes: length) ? .receivedFrame : .end(.booted))
    }

    var isCongested: Bool { gateway.isOverBudget(self) }

    func pause(_ reader: any PausedReader) { gateway.pause(reader, of: self) }

    func protocolViolation(_ code: CloseCode, _ reason: String, on webSocket: WebSocketHandler) {
        webSocket.close(code, reason)
        ended(webSocket, .webSocketClosed)
    }

    func closedByPeer(_ code: CloseCode, on webSocket: WebSocketHandler) { ended(webSocket, .webSocketClosed) }

    func disconnected(_ webSocket: WebSocketHandler) { ended(webSocket, .webSocketDropped) }

    private func ended(_ webSocket: WebSocketHandler, _ input: SocketIOInput) {
        guard webSocket === self.webSocket else { return }
        self.webSocket = nil
        handle(input)
    }

    // MARK: The gateway (GatewayConnection)

    /// Pings a WebSocket, because some clients answer pings but not heartbeats. The heartbeat timeout decides whether the
    /// connection is alive.
    func tick() { webSocket?.tick(dropAfter: nil) }

    func expel(_ error: WireError, _ code: CloseCode) {
        if let socket { gateway.runner.submit(.expel(socket, error, code)) } else { handle(.end(.booted)) }
    }

    func goAway(_: CloseCode) { handle(.end(.goingAway)) }

    // MARK: The runner (RunnerSocket)

    /// Sends or queues a packet without flushing. The runner flushes after the last of several packets.
    func write(_ bytes: [UInt8]) {
        for output in outputs(of: .send(bytes)) { carryOut(output) }
        schedule()
    }

    func flush() {
        guard flushing == .immediate else { return flushing = .due }
        handle(.flush)
        webSocket?.flush()
        queueChanged()
    }

    func queueChanged() { gateway.queueChanged(self) }

    var queuedBytes: Int {
        let held = socket.map { gateway.runner.heldBytes(for: $0) } ?? 0
        return held + connection.queuedBytes + (webSocket?.bufferedBytes ?? 0)
    }

    /// Ends the connection, which cannot be resumed.
    func drop() {
        if let socket { gateway.runner.discardHeld(for: socket) }
        webSocket?.drop()
        handle(.end(.goingAway))
    }

    func close(_ code: CloseCode, _ reason: String) { handle(.end(.booted)) }

    // MARK: The state machine

    private func outputs(of input: SocketIOConnection.Input) -> [SocketIOConnection.Output] {
        connection.settings = SocketIOConnection.Settings(gateway.configuration)
        return connection.handle(input, now: gateway.runner.now)
    }

    private func handle(_ input: SocketIOConnection.Input) { carryOut(outputs(of: input)) }

    /// Carries out outputs. This may cause further inputs, whose outputs are flushed together with these.
    private func carryOut(_ outputs: [SocketIOConnection.Output]) {
        let isOutermost = flushing == .immediate
        if isOutermost { flushing = .deferred }
        for output in outputs { carryOut(output) }
        schedule()
        guard isOutermost else { return }
        let isDue = flushing == .due
        flushing = .immediate
        if isDue { flush() }
    }

    private func carryOut(_ output: SocketIOConnection.Output) {
        switch output {
        case .opened: open()
        case .counted(let packets): gateway.countPackets(packets, of: self)
        case .asked(let request):
            if let socket { gateway.runner.submit(.asked(socket, request)) }
        case .frame(let bytes):
            webSocket?.send(bytes)
            if flushing == .deferred { flushing = .due }
        case .answer(let poll, let packets): polls.removeValue(forKey: poll)?(packets)
        case .closeWebSocket(let code):
            // Clear the property before closing the WebSocket, so that `disconnected` ignores it.
            let closing = webSocket
            webSocket = nil
            closing?.close(code, "")
        case .suspended:
            if let socket { gateway.runner.submit(.suspended(socket)) }
        case .recovered:
            if let socket { gateway.runner.submit(.recovered(socket)) }
        case .recover(let pid, let offset): recover(pid, after: offset)
        case .gone:
            directory.forgetRecovery(of: self)
            guard let socket else { return }
            self.socket = nil
            gateway.runner.unregister(socket, leaving: true)
        case .over:
            timer?.task.cancel()
            timer = nil
            directory.forgetRecovery(of: self)
            directory.forget(self)
        }
    }

    /// Takes over the client of the connection with this secret, and answers the state machine's request.
    private func recover(_ pid: String, after offset: String?) {
        // A later packet of the same request may have ended this connection.
        guard !connection.isOver else { return }
        let earlier = directory.session(recovering: pid)
        guard let earlier, earlier !== self, earlier.engine?.canHandOver(after: offset) ?? false,
            let (state, client) = earlier.handOver(), let client
        else {
            // The client gets a new connection, so nobody will return to the earlier one.
            if let earlier, earlier !== self { earlier.handle(.end(.goingAway)) }
            return handle(.recovery(nil))
        }
        socket = client
        hasOpened = true
        directory.opened(self)
        gateway.runner.replace(client, by: self)
        gateway.runner.submit(.moved(client, address: gateway.limitingText(address)))
        directory.offerRecovery(pid, of: self)
        handle(.recovery(state))
    }

    /// Ends this connection without its client, which another connection takes over.
    ///
    /// - Returns: nil if there is no client that can be taken over.
    private func handOver() -> (SocketIORecovery, SocketID?)? {
        guard var engine, let (state, outputs) = engine.handOver() else { return nil }
        connection = engine
        let client = socket
        socket = nil
        carryOut(outputs)
        return (state, client)
    }

    private func open() {
        hasOpened = true
        directory.opened(self)
        if let pid = engine?.pid { directory.offerRecovery(pid, of: self) }
        let id = gateway.runner.register(self)
        socket = id
        gateway.logger.debug(
            "Socket.IO connection open", metadata: ["socket": "\(id.rawValue)", "address": "\(address)"])
        gateway.runner.submit(
            .legacyArrived(
                LegacyArrival(
                    socket: id, address: gateway.limitingText(address), framing: engine?.framing ?? .object)))
    }

    /// Schedules the timer. A scheduled timer is kept if the deadline moves later, which happens with every packet.
    private func schedule() {
        guard let next = connection.nextTimeout else { return }
        if let timer, timer.at <= next { return }
        timer?.task.cancel()
        let delay = max(0, (next - gateway.runner.now).wholeMilliseconds) + 1
        let session = NIOLoopBound(self, eventLoop: gateway.eventLoop)
        let task = gateway.eventLoop.scheduleTask(in: .milliseconds(delay)) { session.value.timerFired() }
        timer = (next, task)
    }

    private func timerFired() {
        timer = nil
        carryOut(connection.handleTimeout(now: gateway.runner.now))
    }
}
