/// A feature of the web app that has its own page.
public enum Feature: String, Sendable, Equatable, CaseIterable {
    case strangers
    case nearby
    case rooms
}

extension Setting {
    static let web: [Setting] = [
        Setting(
            "web.features", \.web.features, .features,
            "Features of the web app, in the order shown on the start page (/). If there is only one, its page is the "
                + "start page.",
            "Features not listed have no page, but applications can still use them.")
    ]
}

extension Format<[Feature]> {
    /// A format for a list of features: at least one, and each at most once.
    fileprivate static var features: Format<[Feature]> {
        let list: Format<[Feature]> = .list(of: Format<Feature>.choice)
        let names = Feature.allCases.map(\.rawValue)
        let choices = names.dropLast().joined(separator: ", ") + " and " + names[names.count - 1]
        return Format<[Feature]>(
            accepts: "a list of at least one of \(choices), without repetitions", isList: true,
            parse: { items in
                guard let features = list.parse(items), !features.isEmpty, Set(features).count == features.count else {
                    return nil
                }
                return features
            }, write: list.write)
    }
}
