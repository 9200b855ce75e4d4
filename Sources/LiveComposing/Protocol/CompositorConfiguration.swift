import Layout
import Wire

/// What the compositor makes, a JSON object on the wire.
public struct CompositorConfiguration: Payload, Hashable {
    /// The bits per second that the video may have. OpenTok allows 6 Mbit/s.
    public static let bitrates = 100_000...10_000_000
    /// The delays that are possible. Below, frames of a slow network arrive too late; above, the queues grow.
    public static let delays = Duration.milliseconds(200)...Duration.seconds(5)
    /// The threads of the encoder that are possible.
    public static let threadCounts = 1...8

    /// The width of the output in pixels: even, and in `ComposedLayout.sides`.
    public var width: Int
    /// The height of the output in pixels, as `width`.
    public var height: Int
    /// The bits per second of the video, nearly constant.
    public var bitrate: Int
    /// How long after its time a frame is composed. What arrives later is not shown.
    public var delay: Duration
    /// The threads of the video encoder.
    public var threads: Int

    public init(
        width: Int = 1_280, height: Int = 720, bitrate: Int = 2_000_000, delay: Duration = .seconds(2), threads: Int = 1
    ) {
        (self.width, self.height, self.bitrate, self.delay, self.threads) = (width, height, bitrate, delay, threads)
    }

    public init() { self.init(width: 1_280) }

    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.integer("width", &width, in: ComposedLayout.sides)
        try coder.integer("height", &height, in: ComposedLayout.sides)
        try coder.integer("bitrate", &bitrate, in: Self.bitrates)
        try coder.milliseconds("delay", &delay)
        try coder.integer("threads", &threads, in: Self.threadCounts)
        guard width.isMultiple(of: 2), height.isMultiple(of: 2), Self.delays.contains(delay) || !coder.isReading else {
            throw WireError(.malformed, "The size must be even, and the delay \(Self.delays).")
        }
    }
}

/// Where streams are drawn, a JSON object on the wire.
public struct CompositorLayout: Payload, Hashable {
    /// In the order in which they are painted: a later cell covers an earlier one.
    public var cells: [CompositorCell]

    public init(_ cells: [CompositorCell]) { self.cells = cells }

    public init() { self.init([]) }

    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.list("cells", &cells)
        guard coder.isReading else { return }
        guard cells.count <= ComposedLayout.maxDrawn else {
            throw WireError(.malformed, "At most \(ComposedLayout.maxDrawn) streams are drawn.")
        }
    }
}

/// The place of a stream in the output, in whole, even pixels.
public struct CompositorCell: Payload, Hashable {
    /// The number of the stream. It may not be open yet; the cell is black then.
    public var stream: UInt32
    public var x: Int
    public var y: Int
    public var width: Int
    public var height: Int
    /// How a frame of another shape is drawn.
    public var fit: LayoutFit

    public init(stream: UInt32, x: Int, y: Int, width: Int, height: Int, fit: LayoutFit = .contain) {
        (self.stream, self.x, self.y, self.width, self.height, self.fit) = (stream, x, y, width, height, fit)
    }

    public init() { self.init(stream: 0, x: 0, y: 0, width: 2, height: 2) }

    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.integer("stream", &stream, in: 0...UInt32.max)
        try coder.integer("x", &x, in: 0...ComposedLayout.sides.upperBound)
        try coder.integer("y", &y, in: 0...ComposedLayout.sides.upperBound)
        try coder.integer("width", &width, in: 2...ComposedLayout.sides.upperBound)
        try coder.integer("height", &height, in: 2...ComposedLayout.sides.upperBound)
        try coder.choice("fit", &fit)
        guard [x, y, width, height].allSatisfy({ $0.isMultiple(of: 2) }) || !coder.isReading else {
            throw WireError(.malformed, "The edges of a cell must be even.")
        }
    }
}

extension Payload {
    /// Reads a JSON object from the socket.
    init(json: [UInt8]) throws(CompositorMessageError) {
        guard json.count <= CompositorInput.maxJSON else {
            throw CompositorMessageError("A JSON text has \(json.count) bytes; \(CompositorInput.maxJSON) are allowed.")
        }
        let value: JSONValue
        do throws(JSONError) { value = try JSONReader.parse(json) } catch {
            throw CompositorMessageError("A JSON text cannot be read: \(error.message).")
        }
        guard case .object(let object) = value else { throw CompositorMessageError("A JSON text is not an object.") }
        do throws(WireError) { try self.init(members: object) } catch { throw CompositorMessageError(error.message) }
    }
}
