/// One parser, or one machine, and what must hold whatever bytes come.
///
/// The fuzzer (`Fuzz/Sources/fuzz`) looks for bytes that break it; the tests (`Tests/FuzzTests`) run what is kept in
/// `Fuzz/Corpora` and `Fuzz/Findings` through the same functions. A trap breaks it too, so most of them have little to say.
///
/// ```swift
/// extension FuzzTarget {
///     static let ports = FuzzTarget("ports") { input throws(BrokenProperty) in
///         guard let port = Port(input) else { return }
///         try require(Port(port.text) == port, "\(port) is not read as it was written")
///     }
/// }
/// ```
public struct FuzzTarget: Sendable {
    /// Names its folders and files too: `Fuzz/Corpora/<name>`, `Fuzz/Findings/<name>`.
    public let name: String
    /// In bytes. More than an interesting input needs only makes each run slower.
    public let longestInput: Int
    /// The words that the format is made of: `Fuzz/Dictionaries/<dictionary>.dict`.
    public let dictionary: String?
    /// Folders with more inputs to begin with, from the root of the checkout.
    public let seeds: [String]
    public let check: @Sendable (_ input: [UInt8]) throws(BrokenProperty) -> Void

    init(
        _ name: String, longestInput: Int = 1024, dictionary: String? = nil, seeds: [String] = [],
        check: @escaping @Sendable (_ input: [UInt8]) throws(BrokenProperty) -> Void
    ) {
        self.name = name
        self.longestInput = longestInput
        self.dictionary = dictionary
        self.seeds = seeds
        self.check = check
    }
}

/// Something does not hold that must; a sentence that says what.
public struct BrokenProperty: Error, CustomStringConvertible {
    public let description: String
}

func require(_ holds: Bool, _ otherwise: @autoclosure () -> String) throws(BrokenProperty) {
    if !holds { throw BrokenProperty(description: otherwise()) }
}
