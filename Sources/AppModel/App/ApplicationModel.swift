import Confab
import Foundation
import Observation

/// The whole app: the screen being shown, the connection, and the models of all screens.
@MainActor @Observable public final class ApplicationModel: Screen {
    /// The progress of the setup: choosing a server, entering the name, or ready.
    public enum Stage: Equatable, Sendable { case welcome, aboutYou, home }
    /// A tab of the home screen.
    public enum Tab: String, CaseIterable, Sendable { case roulette, nearby, people, room, settings }
    /// The screen that fills the display.
    public enum Shown { case welcome, aboutYou(AboutYouModel), home, call }

    static let settingsKey = "confab"

    public private(set) var stage = Stage.welcome
    public var tab: Tab
    public private(set) var line = ConfabClient.State.idle
    public private(set) var aboutYou: AboutYouModel?
    public let welcome: WelcomeModel
    public let permissions: PermissionsModel
    public let roulette: RouletteModel
    public let nearby: NearbyModel
    public let people: PeopleModel
    public let calls: CallsModel
    public let room: RoomModel
    public let settings: SettingsModel
    /// Whether the app offers chats with strangers, which app stores do not accept.
    public let hasRoulette: Bool

    let platform: Platform
    let server: any AppServer
    private let relay: Relay
    var kept: Kept
    /// Decides when the audio of the roulette and of rooms runs. CallKit does not manage that audio.
    var sound = AudioMachine(usesSystem: false)
    var cancelSound: (@MainActor () -> Void)?
    private var waitingLink: AppLink?
    /// A call chosen in the system's list of recent calls, kept until the server can place it.
    private var waitingCall: (person: Person, video: Bool)?
    /// Whether the app is in the foreground. Initially false, because a push may have launched the app in the
    /// background.
    var isActive = false
    var cancelBackground: (@MainActor () -> Void)?
    /// Whether the app is currently leaving the server because it has been in the background for too long.
    /// `leaveSoonIfUnseen` sets it only while it stops the search and disconnects.
    var isLeaving = false
    let background: BackgroundTime

    /// Forwards requests from the screens to the app, which does not exist yet when the screens are created.
    @MainActor private final class Relay {
        weak var app: ApplicationModel?
    }

    public init(platform: Platform, server: any AppServer, hasRoulette: Bool) {
        (self.platform, self.server, self.hasRoulette) = (platform, server, hasRoulette)
        let stored = platform.settings.data(for: Self.settingsKey)
        let kept = stored.flatMap { try? JSONDecoder().decode(Kept.self, from: $0) } ?? Kept()
        self.kept = kept
        background = BackgroundTime(platform.background)
        tab = hasRoulette ? .roulette : .nearby
        let relay = Relay()
        self.relay = relay
        let announce: @MainActor (String) -> Void = {
            if !$0.isEmpty { platform.announcer.announce($0) }
            // Screens announce each of their changes, so this is the place to update the app.
            relay.app?.update()
        }
        welcome = WelcomeModel(
            recent: kept.recent, permissions: platform.permissions, canScan: platform.canScan,
            check: { relay.app?.check($0) }, use: { relay.app?.use($0) }, goBack: { relay.app?.enter() })
        permissions = PermissionsModel(permissions: platform.permissions) { relay.app?.permitted($0) }
        roulette = RouletteModel(clock: platform.clock, permissions: platform.permissions, announce: announce) {
            relay.app?.perform(.roulette($0))
        }
        nearby = NearbyModel(
            unit: kept.settings.unit, permissions: platform.permissions, location: platform.location
        ) { request in
            if case .call(let person, let video) = request {
                relay.app?.call(person, video: video)
            } else {
                server.perform(.nearby(request))
            }
        }
        people = PeopleModel(clock: platform.clock) { request in
            if case .call(let person, let video) = request {
                relay.app?.call(person, video: video)
            } else {
                server.perform(.people(request))
            }
        }
        calls = CallsModel(
            platform: platform, isTalking: { relay.app?.isTalking ?? false },
            isContact: { relay.app?.people.knows(contact: $0) ?? false },
            keep: { server.perform(.people(.keep(call: $0))) }, request: { server.perform(.callMedia($0)) },
            perform: { relay.app?.perform($0) })
        room = RoomModel(clock: platform.clock, permissions: platform.permissions, announce: announce) {
            relay.app?.perform(.room($0))
        }
        settings = SettingsModel(
            settings: kept.settings, server: kept.server?.absoluteString ?? "", clock: platform.clock
        ) { relay.app?.asked($0) }
        relay.app = self
        calls.onChange = { relay.app?.update() }
        (roulette.onSmallWindow, room.onSmallWindow) = (
            { relay.app?.smallWindowChanged() }, { relay.app?.smallWindowChanged() }
        )
        settings.diagnose = { relay.app?.diagnostics ?? [] }
        server.onEvent = { [weak self] in self?.handle($0) }
        if kept.settings != DeviceSettings() { server.perform(.settings(.changed(kept.settings))) }
        if kept.server != nil { enter() }
        update()
    }

    // MARK: Stages

    /// Checks a server. Ends everything that uses the current connection first, because the check replaces that
    /// connection.
    private func check(_ url: URL) {
        if line != .idle { leaveServer() }
        server.perform(.check(url))
    }

    private func use(_ url: URL) {
        if url != kept.server { forgetAccount() }
        kept.server = url
        kept.recent = welcome.recent
        save()
        enter()
    }

    private func forgetAccount() {
        people.reset()
        nearby.reset()
    }

    /// Ends everything that needs the connection: the chat, the room and all calls.
    private func endAll() {
        roulette.stop()
        room.leave()
        calls.endAll()
    }

    /// Closes the connection and ends everything that needs it.
    func leaveServer() {
        endAll()
        waitingCall = nil
        server.perform(.leave)
        changedLine(to: .idle)
    }

    /// Shows the welcome screen if no server is chosen, or the form for the name if the user has not agreed to the
    /// rules. Otherwise connects.
    func enter() {
        guard let url = kept.server else { return stage = .welcome }
        settings.server = url.absoluteString
        room.server = url
        room.suggest(name: kept.about.name)
        guard kept.about.agreed else { return editAboutYou() }
        (stage, aboutYou) = (.home, nil)
        server.perform(.connect(url, name: kept.about.name))
        if let waitingLink { follow(waitingLink) }
        waitingLink = nil
    }

    public func editAboutYou() {
        aboutYou = AboutYouModel(answers: kept.about) { [weak self] in
            guard let self else { return }
            (stage, aboutYou) = (.home, nil)
        } done: { [weak self] answers in
            guard let self else { return }
            kept.about = answers
            save()
            enter()
            // Send the new name to the server over the open connection.
            if case .online = line { server.perform(.call(.appear)) }
        }
        stage = .aboutYou
    }

    private func asked(_ request: SettingsRequest) {
        switch request {
        case .changeServer: showWelcome()
        case .editAboutYou: editAboutYou()
        case .changed(let settings):
            kept.settings = settings
            nearby.unit = settings.unit
            save()
            server.perform(.settings(request))
        default: server.perform(.settings(request))
        }
    }

    func save() { platform.settings.set(try? JSONEncoder().encode(kept), for: Self.settingsKey) }

    private func showWelcome() {
        welcome.show(canGoBack: kept.server != nil && kept.about.agreed)
        stage = .welcome
    }

    /// Performs a screen's request. Starting a chat leaves the room, and joining a room ends the chat: otherwise the
    /// participants of one could hear the other.
    private func perform(_ request: AppRequest) {
        switch request {
        case .roulette(.start): room.leaveForOther()
        case .room(.join): roulette.stop()
        default: break
        }
        server.perform(request)
        update()
    }

    private func perform(_ request: CallRequest) {
        // A push may arrive after the app went offline in the background, so connect again.
        if request == .openSocket, line == .idle { return enter() }
        server.perform(.call(request))
    }

    private func call(_ person: Person, video: Bool) {
        // Stop the chat first, because the server refuses calls during a chat.
        roulette.stop()
        calls.call(person, video: video)
    }

    private func permitted(_ outcome: PermissionsModel.Outcome) {
        switch outcome {
        case .video: roulette.mode = .video
        // Text chat needs no camera, so open no preview.
        case .text: return roulette.mode = .text
        case .voice:
            roulette.mode = .video
            if !roulette.isCameraOff { roulette.toggleCamera() }
        }
        roulette.preview()
    }

    // MARK: Events

    func handle(_ event: AppEvent) {
        switch event {
        case .checked(let url, let failure): welcome.checked(url, failure)
        case .line(let state, let isNew): changedLine(to: state, isNew: isNew)
        case .nameRefused:
            editAboutYou()
            aboutYou?.refusedName()
        case .roulette(let event): if hasRoulette { roulette.handle(event) }
        case .nearby(let result):
            nearby.handle(result)
            if case .success(let page) = result { people.nearby(page.people) }
        case .people(let event): people.handle(event)
        case .room(let event): room.handle(event)
        case .settings(let event):
            settings.handle(event)
            follow(event)
        case .call(let event): calls.handle(.server(event))
        case .media(let event): calls.handle(event)
        case .contacts(let event):
            people.handle(event)
            roulette.handle(event)
            calls.handle(event)
        case .keepFailed(let call, let error): calls.keepFailed(call, error)
        case .capture(let event):
            calls.handle(event)
            roulette.handle(event)
            room.handle(event)
        }
        update()
    }

    private func changedLine(to state: ConfabClient.State, isNew: Bool = false) {
        line = state
        let isUp: Bool
        switch state {
        case .online:
            isUp = true
            calls.handle(.online(isNew: isNew))
            if isNew { loadPeople() }
            callBack()
        case .reconnecting:
            // Requests are queued until the connection is back, so the screens stay usable.
            isUp = true
            calls.handle(.offline)
        case .idle, .connecting, .offline, .closed:
            isUp = false
            calls.handle(.offline)
        }
        roulette.connection(isUp: isUp)
        nearby.connection(isUp: state == .online)
        room.connection(isUp: isUp)
        if !connectionText.isEmpty { platform.announcer.announce(connectionText) }
    }

    /// Loads the missed calls for the badge, and the blocked people before their screen opens.
    private func loadPeople() {
        people.load()
        server.perform(.settings(.blocked))
    }

    /// Handles the effects of settings events outside the settings screen.
    private func follow(_ event: SettingsEvent) {
        switch event {
        case .blocked(let all): people.knows(blocked: all.map(\.id))
        case .deleted: forgetAccount()
        case .linked:
            forgetAccount()
            loadPeople()
        // With pushes, calls ring even while the phone is locked. Only a notification can then explain why a call
        // cannot be answered, so request the permission to show one.
        case .push(.on): platform.announcer.prepareToNotify()
        case .devices, .code, .push, .exported, .failed: break
        }
    }

    private var isTalking: Bool { roulette.wantsSound || room.wantsSound }

    /// Applies a change to the rest of the app: if a call has started, ends the chat and leaves the room. Then updates
    /// the device's screen, the audio session and the timer for going offline.
    func update() {
        if calls.isInCall {
            roulette.stop()
            room.leaveForOther()
        }
        platform.screen.isScreenKeptAwake = roulette.isScreenAwake || calls.isScreenAwake || room.isScreenAwake
        platform.screen.isDarkAtEar = calls.isAtEar
        // A call has exclusive use of the audio session until the system deactivates it.
        let isFree = calls.coordinator.current == nil && !calls.coordinator.audio.isActive
        let wantsSound = isFree && isTalking
        follow(sound.want(wantsSound))
        trySoundLater()
        leaveSoonIfUnseen()
    }

    // MARK: User and system events

    public func retry() { server.perform(.retry) }

    /// Reports the device's temperature and low-power mode, which limit the camera's frame rate.
    public func deviceChanged(_ thermal: ThermalState, isLowPower: Bool) {
        server.perform(.deviceChanged(thermal, isLowPower: isLowPower))
    }

    /// Reports a change of the network, so that the client checks its connection immediately.
    public func networkChanged(to state: NetworkState) {
        // An on-demand network such as a VPN comes up only when something connects, so treat it as available.
        server.perform(.networkChanged(isAvailable: state != .unavailable))
    }

    /// Places a call that the user chose in the system's list of recent calls. This may have launched the app, so the
    /// call waits until the app is connected to the server.
    ///
    /// - Parameters:
    ///   - contacts: the participants of the earlier call. The first one with a valid id is called. If there is none,
    ///     the call history opens. A participant has no id if the earlier call ended before the server reported the
    ///     caller.
    ///   - video: nil if the system does not know whether the earlier call had video. Then this is a voice call, so
    ///     that the camera stays off.
    public func callBack(_ contacts: [(id: String?, name: String)], video: Bool?) {
        let known = contacts.lazy.compactMap { contact in
            contact.id.flatMap { PersonID(text: $0) }.map { ($0, contact.name) }
        }
        guard let (id, name) = known.first else {
            // There is no one to call, so open the app's call history, which may show the participants.
            (tab, people.page) = (.people, .log)
            return
        }
        waitingCall = (Person(id: id, name: people.name(of: id) ?? name), video ?? false)
        if case .online = line { callBack() }
    }

    private func callBack() {
        guard let wanted = waitingCall else { return }
        waitingCall = nil
        call(wanted.person, video: wanted.video)
    }

    /// Opens a link `confab://server?url=…`, `confab://person/<id>` or `confab://room/<name>`. Ignores other links.
    public func open(_ url: URL) {
        guard let link = AppLink(url) else { return }
        if case .server(let url) = link {
            // A link must not change the server without confirmation: anyone can send one.
            showWelcome()
            welcome.offer(url)
        } else if stage == .home {
            follow(link)
        } else {
            waitingLink = link
        }
    }

    private func follow(_ link: AppLink) {
        switch link {
        case .server: break
        case .person(let id):
            tab = .people
            people.open(id)
        case .room(let name):
            tab = .room
            if !room.showsRoom { room.roomName = name }
        }
    }
}
