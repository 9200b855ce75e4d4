import Wire

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// This person, as other people see them. After ``appear(_:)`` other people can see and call this person.
///
/// ```swift
/// let me = try await client.presence.appear(.init(name: "Ada"))
/// print("Others call me at \(me.id)")
/// ```
///
/// After the connection has been replaced, the SDK makes this person appear again, unless they have left.
public actor Presence {
    /// Who may call a person.
    public enum Ringable: String, Hashable, Sendable, CaseIterable {
        /// Everyone who knows the person's id.
        case everyone
        /// The person's contacts.
        case contacts
        /// No one.
        case nobody
    }

    /// A person's name and settings. A property that is nil keeps its current value. The server keeps the settings
    /// for all devices of the person.
    public struct Settings: Hashable, Sendable {
        /// The name, at most 40 characters; empty for a generated one.
        public var name: String?
        /// Whether other people see the person in lists, and contacts see the person online.
        public var isVisible: Bool?
        /// Whether the person always appears busy to callers.
        public var doNotDisturb: Bool?
        /// Who may call the person.
        public var ringable: Ringable?

        /// Creates settings. Nil keeps the current value.
        public init(
            name: String? = nil, isVisible: Bool? = nil, doNotDisturb: Bool? = nil, ringable: Ringable? = nil
        ) {
            (self.name, self.isVisible) = (name, isVisible)
            (self.doNotDisturb, self.ringable) = (doNotDisturb, ringable)
        }

        var wire: Appearance {
            Appearance(
                name: name, visible: isVisible, doNotDisturb: doNotDisturb,
                ringable: ringable.flatMap { .init(rawValue: $0.rawValue) })
        }
    }

    /// This person.
    public struct Me: Hashable, Sendable, Identifiable {
        /// The public id, which others use to call this person.
        public let id: PersonID
        /// The name that others see.
        public let name: String
        /// Whether others see this person in lists.
        public let isVisible: Bool
        /// Whether this person always appears busy to callers.
        public let doNotDisturb: Bool
        /// Who may call this person.
        public let ringable: Ringable
        /// Whether the server has a location of this person, so that others can see this person nearby.
        public let hasPosition: Bool

        init(_ own: PresenceNotice.Own) {
            (id, name, isVisible, doNotDisturb) = (own.person, own.name, own.visible, own.doNotDisturb)
            (ringable, hasPosition) = (Ringable(rawValue: own.ringable.rawValue) ?? .everyone, own.hasPosition)
        }
    }

    /// A device of this person.
    public struct Device: Hashable, Sendable, Identifiable {
        /// The id of the device, for ``Presence/unlink(_:)``.
        public let id: PersonID
        /// The name that the person gave the device.
        public let label: String
        /// Whether this is the device on which this client runs.
        public let isCurrent: Bool
        /// Whether the person is online on the device.
        public let isOnline: Bool

        init(_ info: DeviceInfo) {
            (id, label, isCurrent, isOnline) = (info.id, info.label, info.current, info.present)
        }
    }

    /// A code that links another device to this person.
    public struct LinkCode: Hashable, Sendable {
        /// Eight characters with a hyphen in the middle, such as `ABCD-EFGH`.
        public let code: String
        /// How long the code is valid.
        public let validFor: Duration
    }

    /// An event about this person.
    public enum Event: Hashable, Sendable {
        /// The name or a setting changed, here or on another device.
        case changed(Me)
        /// This device was unlinked, and is now a separate person.
        case unlinked
        /// The person was deleted. This device is now another person.
        case deleted
        /// After the connection was replaced, the SDK made this person appear again, and the server rejected that.
        case failed(ConfabError)
    }

    private let feature: FeatureCore<PresenceMachine>
    private let source: EventSource<Event>

    init(_ desk: FeatureDesk, _ nearby: Nearby) {
        let source = EventSource<Event> { present, event in
            if case .changed = event { present = [event] }
        }
        feature = FeatureCore(
            PresenceMachine(), desk,
            tell: { news in
                switch news {
                case .changed(let own): source.send(.changed(Me(own)))
                case .unlinked: source.send(.unlinked)
                case .deleted: source.send(.deleted)
                case .failed(let error): source.send(.failed(error))
                }
            },
            perform: { [weak nearby] action in
                switch action {
                case .left: nearby?.presenceLeft()
                }
            })
        self.source = source
        desk.onClose { source.finish() }
    }

    /// The events about this person. An iteration begins with the current settings, if they are known.
    nonisolated public var events: Events<Event> { source.events }
    /// This person, as last reported by the server; nil before ``appear(_:)``, and after this device was unlinked or
    /// the person was deleted.
    nonisolated public var me: Me? { feature.read(\.own).map(Me.init) }

    /// Goes online on this device, applies the settings, and returns the resulting name and settings. Connects the
    /// client if needed.
    ///
    /// - Throws: `invalid_name`, or an error of the connection.
    @discardableResult
    public func appear(_ settings: Settings = Settings()) async throws(ConfabError) -> Me {
        try await feature.desk.core.connect()
        return try await own(.appear(settings.wire))
    }

    /// Changes the name and settings, and returns the new ones.
    ///
    /// - Throws: `not_present` before ``appear(_:)``, `invalid_name`.
    @discardableResult
    public func set(_ settings: Settings) async throws(ConfabError) -> Me { try await own(.set(settings.wire)) }

    private func own(_ command: PresenceMachine.Command) async throws(ConfabError) -> Me {
        guard case .presence(.own(let own)) = try await feature.ask(command) else { throw .noAnswer }
        return Me(own)
    }

    /// Goes offline on this device. A call on this device continues.
    public func leave() async throws(ConfabError) { try await feature.ask(.leave) }

    /// Looks up a person by id, and returns their name and whether they are online.
    ///
    /// - Throws: `not_found` if there is no such person.
    public func find(_ id: PersonID) async throws(ConfabError) -> Person {
        guard case .presence(.person(let found)) = try await feature.ask(.plain(.find(.init(person: id)))) else {
            throw .noAnswer
        }
        return Person(found.person)
    }

    /// Blocks a person. The two people can then no longer see, call or meet each other.
    public func block(_ id: PersonID) async throws(ConfabError) {
        try await feature.ask(.plain(.block(.init(person: id))))
    }

    /// Unblocks a person.
    public func unblock(_ id: PersonID) async throws(ConfabError) {
        try await feature.ask(.plain(.unblock(.init(person: id))))
    }

    /// Returns the people that this person has blocked. Their ids are valid only for ``unblock(_:)``.
    public func blocked() async throws(ConfabError) -> [Person] {
        guard case .presence(.blocked(let list)) = try await feature.ask(.plain(.blocked)) else { throw .noAnswer }
        return list.people.map(Person.init)
    }

    /// Creates a code that links another device to this person.
    public func link() async throws(ConfabError) -> LinkCode {
        guard case .presence(.linkCode(let code)) = try await feature.ask(.link) else { throw .noAnswer }
        return LinkCode(code: code.code, validFor: code.expiresIn)
    }

    /// Links this device to the person who created the code. The connection is replaced afterwards.
    ///
    /// - Parameters:
    ///   - code: the code. Case, hyphens and spaces are ignored.
    ///   - label: a name for this device.
    /// - Throws: `link_invalid`, `invalid_name` for a bad label, `rate_limited`.
    public func useLink(_ code: String, label: String? = nil) async throws(ConfabError) {
        try await feature.ask(.useLink(code: code, label: label))
    }

    /// Returns the devices of this person.
    public func devices() async throws(ConfabError) -> [Device] {
        guard case .presence(.devices(let list)) = try await feature.ask(.plain(.devices)) else { throw .noAnswer }
        return list.devices.map(Device.init)
    }

    /// Unlinks a device from this person. The device then belongs to a separate person again.
    public func unlink(_ device: PersonID) async throws(ConfabError) {
        try await feature.ask(.plain(.unlink(.init(device: device))))
    }

    /// Deletes all data that the server has stored about this person. This ends the account on all linked devices.
    public func delete() async throws(ConfabError) { try await feature.ask(.delete) }

    /// Returns everything that the server has stored about this person, as JSON.
    public func export() async throws(ConfabError) -> Data { try await feature.desk.core.download("/v1/person") }
}
