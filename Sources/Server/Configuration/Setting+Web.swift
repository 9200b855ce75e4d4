/// A feature of the web app that has its own page.
public enum WayIn: String, Sendable, Equatable, CaseIterable {
    case strangers
    case nearby
    case rooms
}

extension Setting {
    static let web: [Setting] = [
        Setting(
            "web.ways", \.web.ways, .ways,
            "Features of the web app, in the order in which / offers them. With only one, / is its page.")
    ]
}

extension Format<[WayIn]> {
    /// A format for a list of features: at least one, and each at most once.
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
