/// A parser or a state machine under test, with the properties that must hold for all inputs.
///
/// The fuzzer (`Fuzz/Sources/fuzz`) searches for inputs that violate the properties. The tests (`Tests/FuzzTests`) run the
/// inputs in `Fuzz/Corpora` and `Fuzz/Findings`. A crash is also a violation, so most targets check little else.
///
/// ```swift
/// extension FuzzTarget {
///     static let ports = FuzzTarget("ports") { input throws(BrokenProperty) in
///         guard let port = Port(input) else { return }
///         try require(Port(port.text) == port, "\(port) is read back differently")
///     }
/// }
/// ```
public struct FuzzTarget: Sendable {
    /// The target's name, also used for its folders `Fuzz/Corpora/<name>` and `Fuzz/Findings/<name>`.
    public let name: String
    /// The maximum length of an input in bytes. Inputs longer than useful only make each run slower.
    public let longestInput: Int
    /// The name of the file with the format's keywords, `Fuzz/Dictionaries/<dictionary>.dict`.
    public let dictionary: String?
    /// Folders with more initial inputs, relative to the root of the checkout.
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

/// The error thrown if a property is violated, with a description of the violation.
public struct BrokenProperty: Error, CustomStringConvertible {
    public let description: String
}

func require(_ holds: Bool, _ otherwise: @autoclosure () -> String) throws(BrokenProperty) {
    if !holds { throw BrokenProperty(description: otherwise()) }
}
