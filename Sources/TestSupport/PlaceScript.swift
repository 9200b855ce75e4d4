import Cluster

/// A random sequence of commands to the table of places, for comparing an implementation with ``PlaceStore``.
///
/// A test carries out each command in the table that it tests and in a `PlaceStore`, and compares the replies and the claims:
///
/// ```swift
/// var script = PlaceScript(seed: seed)
/// var model = PlaceStore()
/// for _ in 0..<1000 {
///     let command = script.next()
///     #expect(try await table.handle(command) == model.handle(command), "\(command)")
/// }
/// ```
///
/// The commands meet each other: few places, lives and claim numbers, and epochs that are too old.
public struct PlaceScript {
    /// The places that the commands are about. Compare their claims in the end. The ids have characters that need care in keys.
    public static let keys =
        ["kitchen", "a:b", "küche 🍽", "{x} *?[1]", "\"\\\r\n"].map { PlaceKey(.room, $0) } + [PlaceKey(.hall)]

    private var random: SeededGenerator
    private var epoch: UInt64 = 1

    /// Creates the sequence of a seed, which the test prints.
    public init(seed: UInt64) { random = SeededGenerator(seed: seed) }

    /// Returns the next command.
    public mutating func next() -> PlaceCommand {
        let key = Self.keys.randomElement(using: &random)!
        switch Int.random(in: 0..<20, using: &random) {
        case 0:
            epoch += UInt64.random(in: 0...1, using: &random)
            return register()
        case 1: return register()
        case 2..<5: return .find(key, epoch: someEpoch())
        case 5..<10: return .release(key, claim())
        default: return .claim(key, claim(), epoch: someEpoch(), void: void())
        }
    }

    private mutating func register() -> PlaceCommand {
        var claims: [PlaceKey: PlaceClaim] = [:]
        for key in Self.keys where Bool.random(using: &random) { claims[key] = claim() }
        return .register(claims, epoch: someEpoch(), void: void())
    }

    /// The current epoch, or sometimes one before or after it.
    private mutating func someEpoch() -> UInt64 {
        switch Int.random(in: 0..<12, using: &random) {
        case 0: epoch - 1
        case 1: epoch + 1
        default: epoch
        }
    }

    /// Tags with few bits and with all, and numbers of one digit and of many.
    private mutating func tag() -> NodeTag {
        [NodeTag(node: 1, life: 1), NodeTag(node: 1, life: 11), NodeTag(node: 65_535, life: NodeTag.lastLife)]
            .compactMap(\.self).randomElement(using: &random)!
    }

    private mutating func claim() -> PlaceClaim {
        PlaceClaim(tag: tag(), number: [1, 2, 9, 10, 9_007_199_254_740_993].randomElement(using: &random)!)
    }

    private mutating func void() -> [NodeTag] { Bool.random(using: &random) ? [] : [tag(), tag()] }
}
