import Confab
import Foundation
import Observation

/// The settings of this device. The renderer, the codecs and the connection type apply to the next call, chat or
/// room.
public struct DeviceSettings: Codable, Equatable, Sendable {
    public var renderer = RendererChoice.sampleBuffer
    public var videoCodec = VideoCodecChoice.any
    public var audioCodec = AudioCodecChoice.any
    public var candidates = CandidateChoice.any
    public var transport = ProtocolChoice.any
    public var size = PictureSize.usual
    public var unit = Nearby.Unit.kilometers
    /// Whether calls ring while the app is closed, if the device and the server support that.
    public var isNotified = true

    public init() {}
}

/// What the settings screen asks the app and the server to do.
public enum SettingsRequest: Equatable, Sendable {
    case changed(DeviceSettings)
    case changeServer, editAboutYou
    case devices, makeCode, useCode(String), unlink(PersonID)
    case blocked, unblock(PersonID)
    case export, deleteAccount
    case push(Bool)
}

/// An event from the SDK about the account and its devices.
public enum SettingsEvent: Sendable {
    case devices([Presence.Device])
    case code(Presence.LinkCode)
    /// This device now belongs to the other device's account.
    case linked
    case blocked([Person])
    case push(SettingsModel.Push)
    case exported(Data)
    case deleted
    case failed(ConfabError)
}

/// The screen for the settings, and for the account and its data.
@MainActor @Observable public final class SettingsModel: Screen {
    /// Whether notifications about calls are on, or why they are not.
    public enum Push: Equatable, Sendable { case unavailable, off, busy, on, refused }
    /// The progress of linking this device to another account.
    public enum Linking: Equatable, Sendable { case none, asking, busy, done }
    /// The progress of exporting or deleting the account's data.
    public enum Account: Equatable, Sendable { case none, exporting, exported(URL), askingToDelete, deleting, deleted }

    public var settings: DeviceSettings { didSet { if settings != oldValue { request(.changed(settings)) } } }
    public internal(set) var server: String
    public private(set) var devices: [Presence.Device] = []
    public private(set) var code: String?
    private var codeMinutes = 0
    private var cancelCode: (@MainActor () -> Void)?
    public private(set) var linking = Linking.none
    public private(set) var blocked: [Person]?
    public private(set) var push = Push.unavailable
    public private(set) var account = Account.none
    public private(set) var trouble: ConfabError?
    public var codeDraft = ""
    /// The state of the app, shown for debugging.
    public var diagnostics: [String] { diagnose() }
    @ObservationIgnored var diagnose: @MainActor () -> [String] = { [] }
    /// The licenses of the app and its dependencies.
    public let licenses = Licenses.all
    private let clock: any AppClock
    private let request: @MainActor (SettingsRequest) -> Void

    init(
        settings: DeviceSettings, server: String, clock: any AppClock,
        request: @escaping @MainActor (SettingsRequest) -> Void
    ) {
        (self.settings, self.server, self.clock, self.request) = (settings, server, clock, request)
    }

    // MARK: User actions

    public func load() {
        if linking == .done { linking = .none }
        request(.devices)
        request(.blocked)
    }
    public func changeServer() { request(.changeServer) }
    public func editAboutYou() { request(.editAboutYou) }
    public func makeCode() { request(.makeCode) }
    public var canLink: Bool { canUseCode && linking != .busy }
    public var canUseCode: Bool { codeDraft.filter { $0.isLetter || $0.isNumber }.count == 8 }
    /// Asks for confirmation before linking, which replaces the data of this device.
    public func askToLink() { if canUseCode { linking = .asking } }
    public func cancelLink() { linking = .none }
    public func useCode() {
        guard canUseCode, linking == .asking else { return }
        linking = .busy
        request(.useCode(codeDraft))
    }
    public func unlink(_ id: PersonID) { request(.unlink(id)) }
    public func unblock(_ id: PersonID) {
        blocked?.removeAll { $0.id == id }
        request(.unblock(id))
    }
    public func togglePush() {
        guard canTogglePush else { return }
        let isOn = push == .off
        push = .busy
        settings.isNotified = isOn
        request(.push(isOn))
    }
    public func export() {
        guard canExport else { return }
        account = .exporting
        request(.export)
    }
    public func askToDelete() { account = .askingToDelete }
    public func cancelDelete() { if account == .askingToDelete { account = .none } }
    public func deleteAccount() {
        guard account == .askingToDelete else { return }
        account = .deleting
        request(.deleteAccount)
    }

    func handle(_ event: SettingsEvent) {
        trouble = nil
        switch event {
        case .devices(let all): devices = all
        case .code(let link):
            code = link.code
            codeMinutes = max(1, link.validFor.wholeSeconds / 60)
            cancelCode?()
            cancelCode = clock.schedule(after: link.validFor) { [weak self] in self?.code = nil }
        case .linked: (linking, codeDraft) = (.done, "")
        case .blocked(let people): blocked = people
        case .push(let push): self.push = push
        case .exported(let data): exported(data)
        case .deleted: account = .deleted
        case .failed(let trouble):
            self.trouble = trouble
            if account == .exporting || account == .deleting { account = .none }
            if push == .busy { push = .off }
            if linking == .busy { linking = .none }
        }
    }

    /// Writes the data to a file, which the user can share.
    private func exported(_ data: Data) {
        let file = FileManager.default.temporaryDirectory.appending(path: "confab-data.json")
        do {
            try data.write(to: file, options: .atomic)
            account = .exported(file)
        } catch {
            account = .none
            trouble = ConfabError("export_failed", "Your data could not be saved. Free some space and try again.")
        }
    }

    // MARK: Enabled controls

    public var canTogglePush: Bool { push == .on || push == .off }
    public var canExport: Bool { account != .exporting }
    public var canDelete: Bool { account != .deleting }
    public var offersDelete: Bool { account == .askingToDelete }
    public var pushButtonText: String { push == .on ? "Turn notifications off" : "Turn notifications on" }
    public var troubleText: String { trouble?.message ?? "" }
    public var exportedFile: URL? { if case .exported(let file) = account { file } else { nil } }

    // MARK: Text

    public let choicesText = "Changes to the renderer, codecs and connection type apply to the next call or room."
    /// The people who can be unblocked; empty until they are loaded.
    public var blockedPeople: [Person] { blocked ?? [] }
    public var codeText: String {
        guard let code else { return "" }
        let minutes = counted(codeMinutes, "minute", "minutes")
        return "Code for your other device: \(code). It can be used once and expires in \(minutes)."
    }
    public var offersLink: Bool { linking == .asking }
    public var linkText: String {
        switch linking {
        case .none: ""
        case .asking:
            "Link this device to the other account? This device’s contacts and call history will be replaced by that "
                + "account’s."
        case .busy: "Linking…"
        case .done: "This device is linked. It has the contacts and call history of your other device."
        }
    }
    public var blockedText: String { blocked?.isEmpty == true ? "No one is blocked." : "" }
    public var deviceRows: [ListRow<PersonID>] {
        devices.map {
            let name = $0.label.isEmpty ? "Unnamed device" : $0.label
            return ListRow(id: $0.id, title: name, detail: $0.isCurrent ? "this device" : "")
        }
    }

    public var pushText: String {
        switch push {
        case .unavailable: "Notifications are not available here. Calls ring only while the app is open."
        case .off: "You are notified of calls only while the app is open."
        case .busy: "One moment…"
        case .on: "You are notified of calls even while the app is closed."
        case .refused: "Notifications are off for Confab. Allow them in Settings."
        }
    }

    public var accountText: String {
        switch account {
        case .none: ""
        case .exporting: "Preparing your data…"
        case .exported: "Your data is ready to share."
        case .askingToDelete:
            "Delete your account on all devices? Your name, contacts, call history and block list will be deleted "
                + "for good."
        case .deleting: "Deleting…"
        case .deleted: "Your account was deleted. You get a new one the next time you connect."
        }
    }

    public var lines: [ScreenLine] {
        var lines: [ScreenLine] = [.title("Settings")]
        if let trouble { lines.append(.text(trouble.message)) }
        lines += [.choice("Server", value: server), .button("Change server"), .button("Name and rules")]
        lines += [.title("Calls and rooms"), .text(choicesText)]
        lines += choiceLines
        lines += [.title("Notifications"), .text(pushText)]
        lines.append(.button(pushButtonText, isEnabled: canTogglePush))
        lines.append(.title("Your devices"))
        lines += deviceRows.map { .row($0.title, detail: $0.detail) }
        if !codeText.isEmpty { lines.append(.text(codeText)) }
        lines += [
            .button("Link another device"), .field("Code from your other device", value: codeDraft, hint: "ABCD-EFGH"),
        ]
        if !linkText.isEmpty { lines.append(.text(linkText)) }
        lines += offersLink ? [.button("Link"), .button("Cancel")] : [.button("Link this device", isEnabled: canLink)]
        lines.append(.title("Blocked people"))
        if !blockedText.isEmpty { lines.append(.text(blockedText)) }
        lines += blockedPeople.map { .row($0.name) }
        lines.append(.title("Your data"))
        if !accountText.isEmpty { lines.append(.text(accountText)) }
        return lines + dataLines
    }

    private var choiceLines: [ScreenLine] {
        [
            .choice("Camera resolution", value: settings.size.text),
            .choice("Renderer", value: settings.renderer.text),
            .choice("Video codec", value: settings.videoCodec.text),
            .choice("Audio codec", value: settings.audioCodec.text),
            .choice("Connection type", value: settings.candidates.text),
            .choice("Protocol", value: settings.transport.text),
            .choice("Distance unit", value: settings.unit.text),
        ]
    }

    private var dataLines: [ScreenLine] {
        if account == .askingToDelete { return [.button("Delete account"), .button("Cancel")] }
        return [
            .button("Download my data", isEnabled: canExport),
            .button("Delete my account", isEnabled: canDelete), .button("Diagnostics"), .button("Licenses"),
        ]
    }
}
