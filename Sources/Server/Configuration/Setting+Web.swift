/// A way to meet people, with a page of its own.
public enum WayIn: String, Sendable, Equatable, CaseIterable {
    case strangers
    case nearby
    case rooms
}

extension Setting {
    static let web: [Setting] = [
        Setting(
            "web.ways", \.web.ways, .ways,
            "Ways to meet people that the web app offers, the first one first. With only one, / is its page.")
    ]
}

extension Format<[WayIn]> {
    /// A format for ways in: at least one, and each at most once.
    fileprivate static var ways: Format<[WayIn]> {
        let list: Format<[WayIn]> = .list(of: Format<WayIn>.choice)
        return Format<[WayIn]>(
            accepts: list.accepts + ", at least one and each once", isList: true,
            parse: { items in
                guard let ways = list.parse(items), !ways.isEmpty, Set(ways).count == ways.count else { return nil }
                return ways
            }, write: list.write)
    }
}
