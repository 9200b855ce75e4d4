import Confab
import Foundation
import Observation

extension Nearby.Unit: Codable {
    /// The upper bounds of the distance ranges in this unit (`protocol/people.md` §11). They are also the selectable
    /// radii.
    public var edges: [Int] {
        switch self {
        case .miles: [2, 5, 10, 25, 50, 100, 200]
        case .kilometers: [3, 8, 16, 40, 80, 160, 320]
        }
    }

    public func text(_ edge: Int) -> String { self == .miles ? counted(edge, "mile", "miles") : "\(edge) km" }
}

/// What the screen for people nearby asks the server to do.
public enum NearbyRequest: Equatable, Sendable {
    case appear(visible: Bool, doNotDisturb: Bool)
    case move(DevicePosition)
    case forgetPosition
    case watch(Nearby.Unit, radius: Int, after: String?)
    case unwatch
    case call(Person, video: Bool)
}

/// The list of people nearby, with a call button in each row.
@MainActor @Observable public final class NearbyModel: Screen {
    /// What the screen shows: the list of people, or why there is none.
    public enum Status: Equatable, Sendable {
        /// The user does not share the location: sharing was never started, or was stopped.
        case off
        case refused(PermissionStatus)
        case locating
        /// The device cannot determine its location.
        case noPosition
        case loading
        case list
        /// The connection was lost after the list was loaded, so the list may be out of date.
        case stale
        case failed(ConfabError)
    }

    /// A person in the list, as shown in one row.
    public struct Row: Equatable, Identifiable, Sendable {
        public var id: PersonID
        public var title: String
        public var detail: String
        public var canCall: Bool
        public var accessibilityText: String { "\(title), \(detail)" }
    }

    /// The initial radius if the unit has no list of radii.
    static let usualRadius = 200
    public private(set) var status = Status.off
    public private(set) var people: [Nearby.Neighbor] = []
    public private(set) var hasMore = false
    public private(set) var isLaterPage = false
    public var unit: Nearby.Unit { didSet { if unit != oldValue { changedUnit() } } }
    public var radius: Int { didSet { if radius != oldValue { watch() } } }
    public var isVisible = true { didSet { if isVisible != oldValue { appear() } } }
    public var doNotDisturb = false { didSet { if doNotDisturb != oldValue { appear() } } }

    private var next: String?
    private let permissions: any Permissions
    private let location: any Locating
    private let request: @MainActor (NearbyRequest) -> Void

    init(
        unit: Nearby.Unit, permissions: any Permissions, location: any Locating,
        request: @escaping @MainActor (NearbyRequest) -> Void
    ) {
        (self.unit, self.permissions, self.location, self.request) = (unit, permissions, location, request)
        radius = unit.edges.last ?? Self.usualRadius
    }

    // MARK: User actions

    /// Shares the location, after requesting permission if necessary. Shows the reason if permission is refused.
    public func share() {
        switch permissions.status(of: .location) {
        case .allowed: locate()
        case .notAsked:
            status = .locating
            permissions.request(.location) { [weak self] status in
                if status == .allowed { self?.locate() } else { self?.status = .refused(status) }
            }
        case let status: self.status = .refused(status)
        }
    }

    public func stopSharing() {
        request(.unwatch)
        request(.forgetPosition)
        reset()
    }

    /// Stops locating and clears the list. Also called when the user switches servers, because the list came from the
    /// previous server and the location was shared only with it.
    func reset() {
        location.stop()
        (status, people, next, hasMore, isLaterPage) = (.off, [], nil, false, false)
    }

    public func refresh() {
        switch status {
        case .list, .stale, .failed, .loading: watch()
        case .off, .refused, .noPosition: share()
        case .locating: break
        }
    }

    /// Returns to the first page, which lists the closest people.
    public func showClosest() { refresh() }

    public func showFarther() {
        guard let next else { return }
        isLaterPage = true
        request(.watch(unit, radius: radius, after: next))
    }

    public func call(_ id: PersonID, video: Bool) {
        guard let person = people.first(where: { $0.id == id }), !person.isBusy else { return }
        request(.call(Person(id: person.id, name: person.name), video: video))
    }

    // MARK: Events

    private func locate() {
        status = .locating
        location.start { [weak self] in self?.located($0) }
    }

    private func located(_ report: LocationReport) {
        switch report {
        case .position(let position):
            request(.move(position))
            if status == .locating || status == .noPosition { watch() }
        case .unavailable: if status == .locating { status = .noPosition }
        case .forbidden(let permission):
            // The user withdrew the permission in Settings, so delete the location on the server too.
            stopSharing()
            if permission != .notAsked { status = .refused(permission) }
        }
    }

    private func watch() {
        switch status {
        case .off, .refused: return
        default: break
        }
        if people.isEmpty { status = .loading }
        isLaterPage = false
        request(.watch(unit, radius: radius, after: nil))
    }

    private func changedUnit() {
        // Choose the radius at the same position in the new unit's list.
        let old = unit == .miles ? Nearby.Unit.kilometers : .miles
        let index = old.edges.firstIndex(of: radius) ?? unit.edges.count - 1
        people = []
        radius = unit.edges[index]
    }

    private func appear() { request(.appear(visible: isVisible, doNotDisturb: doNotDisturb)) }

    func handle(_ result: Result<Nearby.Page, ConfabError>) {
        switch status {
        case .off, .refused: return
        default: break
        }
        switch result {
        case .success(let page):
            (people, next, hasMore) = (page.people, page.next, page.next != nil)
            status = .list
        case .failure(let trouble): status = .failed(trouble)
        }
    }

    func connection(isUp: Bool) {
        switch status {
        case .list where !isUp: status = .stale
        // Request the list again, because a request sent over the previous connection gets no answer.
        case .stale where isUp, .loading where isUp, .failed where isUp: watch()
        case .off, .refused, .locating, .noPosition, .loading, .list, .stale, .failed: break
        }
    }

    // MARK: Text

    public var statusText: String {
        switch status {
        case .off: "Share your location to see people nearby and to be seen by them."
        case .refused(.restricted):
            "This device does not allow location access. You can still find people by their link."
        case .refused: "Location access is off for Confab. Allow it in Settings, or find people by their link."
        case .locating: "Finding your location…"
        case .noPosition: "Your location could not be determined. Try again, or find people by their link."
        case .loading: "Looking for people nearby…"
        case .list where people.isEmpty: "No one else is here yet. People appear here when they come online."
        case .list: ""
        case .stale: "This list may be out of date. It will be updated when you are connected again."
        case .failed(let trouble): trouble.message
        }
    }

    public let privacyText =
        "Others see only a rough distance. The server stores only your approximate area, about 2 km wide."
    public var offersSettings: Bool { if case .refused(.refused) = status { true } else { false } }
    public var offersShare: Bool { status == .off }
    public var offersRetry: Bool { status == .noPosition }
    /// Whether the location is shared or about to be.
    public var isSharing: Bool {
        switch status {
        case .off, .refused: false
        case .locating, .noPosition, .loading, .list, .stale, .failed: true
        }
    }
    /// Whether to show the list, even if it is empty, outdated, or not loaded yet.
    public var showsList: Bool { isSharing && status != .locating && status != .noPosition }
    public var radiusText: String { text(of: radius) }
    public func text(of radius: Int) -> String { "Within \(unit.text(radius))" }

    public var rows: [Row] {
        people.map {
            let distance = "within \(unit.text($0.distance))"
            return Row(
                id: $0.id, title: $0.name, detail: $0.isBusy ? "\(distance) · In a call" : distance,
                canCall: !$0.isBusy && status != .stale)
        }
    }

    public var lines: [ScreenLine] {
        var lines: [ScreenLine] = [.title("Nearby")]
        if !statusText.isEmpty { lines.append(.text(statusText)) }
        switch status {
        case .off: return lines + [.text(privacyText), .button("Share my location")]
        case .refused: return lines + (offersSettings ? [.button("Open Settings")] : [])
        case .locating: return lines + [.button("Stop sharing my location")]
        case .noPosition: return lines + [.button("Try again"), .button("Stop sharing my location")]
        case .loading, .list, .stale, .failed: break
        }
        lines.append(.choice("Distance", value: radiusText))
        for row in rows {
            lines.append(.row(row.title, detail: row.detail))
            lines += [
                .button("Call \(row.title)", isEnabled: row.canCall),
                .button("Voice call \(row.title)", isEnabled: row.canCall),
            ]
        }
        if hasMore { lines.append(.button("Farther away")) }
        if isLaterPage { lines.append(.button("Closer")) }
        return lines + [
            .button("Refresh"), .toggle("Show me to people nearby", isOn: isVisible),
            .toggle("Do not disturb", isOn: doNotDisturb), .button("Stop sharing my location"),
        ]
    }
}
