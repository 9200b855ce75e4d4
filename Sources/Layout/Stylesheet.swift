/// A style sheet of OpenTok's layout type `custom`: a small part of CSS 2.2 for a container with one element for each stream.
///
/// Only what OpenTok documents is accepted: type and class selectors for `stream`, `:first-child`, `:last-child`, `:nth-child(n)`,
/// `:nth-last-child(n)`, the combinators `+` and `~`, and lists. Anything else is an error with its line.
public struct Stylesheet: Hashable, Sendable {
    /// The maximum length of a sheet in bytes, as OpenTok documents.
    public static let maxSize = 20 << 10
    /// The maximum number of rules.
    public static let maxRules = 200
    /// The maximum number of compound selectors that combinators join.
    public static let maxCompounds = 16

    var rules: [Rule] = []

    /// Parses a sheet.
    ///
    /// - Throws: the first problem.
    public init(_ text: String) throws(StylesheetError) {
        guard text.utf8.count <= Self.maxSize else {
            throw StylesheetError(line: 1, message: "The style sheet must not exceed \(Self.maxSize) bytes.")
        }
        var parser = StylesheetParser(text)
        rules = try parser.rules()
    }

    /// A selector list, and what applies to the streams that it matches.
    struct Rule: Hashable, Sendable {
        var selectors: [Selector]
        var declarations: [Declaration]
    }

    /// Compound selectors, joined by combinators. The last one is the stream that is styled.
    struct Selector: Hashable, Sendable {
        var compounds: [Compound]
        /// The combinator before each compound except the first.
        var combinators: [Combinator]

        /// How specific the selector is: pseudo-classes and classes, then types (CSS Selectors 3 §9).
        var specificity: Int {
            compounds.reduce(0) { $0 + 1_000 * ($1.classes.count + $1.positions.count) + ($1.isTyped ? 1 : 0) }
        }
    }

    enum Combinator: Hashable, Sendable {
        /// `+`
        case next
        /// `~`
        case later
    }

    struct Compound: Hashable, Sendable {
        var isTyped = false
        var classes: [String] = []
        var positions: [Position] = []
    }

    enum Position: Hashable, Sendable {
        /// `:nth-child(n)`. `:first-child` is 1.
        case fromStart(Int)
        /// `:nth-last-child(n)`. `:last-child` is 1.
        case fromEnd(Int)
    }

    enum Declaration: Hashable, Sendable {
        case length(LengthProperty, StyleLength)
        case zIndex(Int)
        case position(isAbsolute: Bool)
        case display(StyleDisplay)
        case float(StyleFloat)
        case clear(StyleClear)
        case objectFit(LayoutFit)
    }

    enum LengthProperty: String, Hashable, Sendable {
        case width, height, left, right, top, bottom
        case minWidth = "min-width"
        case minHeight = "min-height"
        case maxWidth = "max-width"
        case maxHeight = "max-height"
        case marginTop = "margin-top"
        case marginRight = "margin-right"
        case marginBottom = "margin-bottom"
        case marginLeft = "margin-left"

        /// Whether negative values are allowed.
        var maySubtract: Bool {
            switch self {
            case .width, .height, .minWidth, .minHeight, .maxWidth, .maxHeight: false
            default: true
            }
        }
    }
}

/// The reason why a style sheet is refused.
public struct StylesheetError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The line, from 1.
    public var line: Int
    /// A sentence.
    public var message: String

    public var description: String { "Line \(line): \(message)" }
}

enum StyleLength: Hashable, Sendable {
    case pixels(Double)
    case percent(Double)

    /// The length in pixels.
    ///
    /// - Parameter whole: what 100 % is.
    func resolved(_ whole: Double) -> Double {
        switch self {
        case .pixels(let pixels): pixels
        case .percent(let percent): percent * whole / 100
        }
    }
}

enum StyleDisplay: String, Hashable, Sendable {
    case inline, block
    case inlineBlock = "inline-block"
}

enum StyleFloat: String, Hashable, Sendable {
    case none, left, right
}

enum StyleClear: String, Hashable, Sendable {
    case none, left, right, both
}

/// How a picture of another shape than its cell is drawn.
public enum LayoutFit: String, Hashable, Sendable {
    /// The whole picture, with black beside it.
    case contain
    /// The middle of the picture fills the cell.
    case cover
}
