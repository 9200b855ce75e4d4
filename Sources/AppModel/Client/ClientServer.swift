import Confab
import Foundation

/// Connects the screens to the SDK: translates the app's requests into SDK calls, and SDK events into the app's events.
@MainActor public final class ClientServer: AppServer {
    public var onEvent: (@MainActor (AppEvent) -> Void)?

    private let engine: ConfiguredEngine?
    private(set) var client: ConfabClient?
    private var address: URL?
    private var listeners: [Task<Void, Never>] = []
    /// The last queued request. Requests run one at a time, in the order of the user's taps.
    private var last: Task<Void, Never>?
    private var wasOnline = false
    let media: OwnMedia
    /// The number of previews and searches about to start. Until they have started, the end of an earlier search must
    /// not close the camera.
    var rouletteStarts = 0
    lazy var calls = CallsLink(self)
    lazy var room = RoomLink(self)
    private var watching: Task<Void, Never>?
    var isVisible = true
    var doNotDisturb = false
    var name = ""

    /// - Parameter media: the media engine; nil for text chats only.
    public init(media: (any MediaEngine)?) {
        engine = media.map(ConfiguredEngine.init)
        self.media = OwnMedia(media)
        self.media.onEvent = { [weak self] in self?.send(.capture($0)) }
    }

    /// Applies settings. The video size changes immediately. The others apply to connections, video sources and push
    /// registrations made afterwards.
    func choose(_ settings: DeviceSettings) {
        calls.wantsPush = settings.isNotified
        engine?.choose(settings)
        media.size = settings.size
    }

    func send(_ event: AppEvent) { onEvent?(event) }

    /// Queues a request behind the earlier ones. Calls `failed` with the error if the request fails, or immediately if
    /// no server is in use.
    func queue(
        _ work: @escaping @MainActor (ConfabClient) async throws(ConfabError) -> Void,
        failed: @escaping @MainActor (ConfabError) -> Void = { _ in }
    ) {
        guard let client else { return failed(.offline) }
        let before = last
        last = Task {
            await before?.value
            do throws(ConfabError) { try await work(client) } catch { failed(error) }
        }
    }

    public func perform(_ request: AppRequest) {
        switch request {
        case .check(let url): check(url)
        case .connect(let url, let name): connect(url, name)
        case .retry: retry()
        case .networkChanged(let isAvailable): client?.networkChanged(isAvailable: isAvailable)
        case .deviceChanged(let thermal, let isLowPower):
            (media.conditions.thermal, media.conditions.isLowPower) = (thermal, isLowPower)
        case .leave: close()
        case .roulette(let request): perform(request)
        case .nearby(let request): perform(request)
        case .people(let request): perform(request)
        case .room(let request): room.perform(request)
        case .settings(let request): perform(request)
        case .call(let request): calls.perform(request)
        case .callMedia(let request): media.perform(request)
        }
    }

    // MARK: The connection

    /// Connects once, which also checks that the app and the server support the same protocol version. If this
    /// succeeds, the connection stays open for use.
    private func check(_ url: URL) {
        close()
        let client = makeClient(url)
        (self.client, address) = (client, url)
        Task {
            var failure: ConfabError?
            do throws(ConfabError) { try await client.connect() } catch { failure = error }
            guard self.client === client else { return }
            if failure != nil { close() }
            send(.checked(url, failure))
        }
    }

    private func connect(_ url: URL, _ name: String) {
        self.name = name
        if client == nil || address != url {
            close()
            (client, address) = (makeClient(url), url)
        }
        listen()
        retry()
    }

    private func makeClient(_ url: URL) -> ConfabClient {
        var options = ConfabClient.Options()
        options.showsWarnings = true
        return ConfabClient(server: url, media: engine, options: options)
    }

    private func retry() {
        guard let client else { return }
        // Ignore the error: the client's `states` report the result.
        Task { try? await client.connect() }
    }

    private func close() {
        for listener in listeners { listener.cancel() }
        watching?.cancel()
        (listeners, watching, last, wasOnline) = ([], nil, nil, false)
        calls.forget()
        room.forget()
        guard let client else { return }
        (self.client, address) = (nil, nil)
        Task { await client.leave() }
        media.release(.all)
        send(.roulette(.released))
    }

    private func listen() {
        guard let client, listeners.isEmpty else { return }
        listen(to: client.states) { [weak self] in self?.changed($0) }
        listen(to: client.notices) { [weak self] in self?.noticed($0) }
        listen(to: client.roulette.events) { [weak self] in self?.happened($0) }
        listen(to: client.calls.events) { [weak self] in self?.calls.happened($0) }
        listen(to: client.contacts.events) { [weak self] in self?.send(.contacts($0)) }
        listen(to: client.presence.events) { [weak self] in self?.happened($0) }
    }

    func listen<Element: Sendable>(
        to events: Events<Element>, _ body: @escaping @MainActor (Element) -> Void
    ) {
        listeners.append(Task { for await event in events { body(event) } })
    }

    private func changed(_ state: ConfabClient.State) {
        // A connection that was only interrupted is not new, unless a notice reports that it was replaced.
        send(.line(state, isNew: state == .online && !wasOnline))
        switch state {
        case .online: wasOnline = true
        case .reconnecting: break
        case .idle, .connecting, .offline, .closed: wasOnline = false
        }
    }

    private func noticed(_ notice: ConfabClient.Notice) {
        if case .restarted = notice, wasOnline { send(.line(.online, isNew: true)) }
    }

    /// Goes online as a person who can be called, or updates that person's settings. Reports if the server refuses the
    /// name.
    func appear() {
        let settings = Presence.Settings(name: name, isVisible: isVisible, doNotDisturb: doNotDisturb, ringable: nil)
        queue { client throws(ConfabError) in
            try await client.presence.appear(settings)
        } failed: { [weak self] error in
            if error.code == .invalidName { self?.send(.nameRefused) }
        }
    }

    private func happened(_ event: Presence.Event) {
        switch event {
        case .changed: break
        case .deleted: send(.settings(.deleted))
        case .unlinked: send(.settings(.devices([])))
        case .failed(let error): if error.code == .invalidName { send(.nameRefused) }
        }
    }

    /// Forwards the updates of one page of the people nearby. A new watch replaces the previous one; nil only ends the
    /// previous one.
    func watch(_ pages: Events<Nearby.Page>?) {
        watching?.cancel()
        guard let pages else { return watching = nil }
        watching = Task { [weak self] in
            for await page in pages { self?.send(.nearby(.success(page))) }
        }
    }
}

extension ConfabError {
    static let offline = ConfabError(.notConnected, "Not connected to the server.", isRetryable: true)
}
