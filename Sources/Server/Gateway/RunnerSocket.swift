import Signaling
import Wire

/// A socket as the runner sees it. Used only on the runner's event loop.
protocol RunnerSocket: AnyObject {
    /// The account of the client's address; nil for a closed socket.
    var slot: AddressBudgets.Slot? { get }
    /// Counts the bytes that wait for the client, after some were added that wait for a commit.
    func queueChanged()
    /// Queues one message. `flush` sends it.
    func write(_ bytes: [UInt8])
    func flush()
    func close(_ code: CloseCode, _ reason: String)
    /// Closes without a close frame, so that the client resumes.
    func drop()
    /// Delivers the reply to a request. Only WHIP and WHEP resources make requests.
    func reply(_ reply: ResourceReply)
    /// Delivers the answer to a request of an operator or application.
    func answer(_ reply: RoomReply)
}

extension RunnerSocket {
    func reply(_ reply: ResourceReply) {}
    func answer(_ reply: RoomReply) {}
    // WHIP and WHEP resources have no queue.
    func drop() {}
    func queueChanged() {}
}

/// The budgets of address blocks, as the runner uses them.
protocol ClientBudgets: AnyObject {
    /// What a client with this slot may cause to be stored at present.
    func storagePermit(_ slot: AddressBudgets.Slot?) -> StoragePermit
    /// Charges what a client caused to be stored.
    func charge(storedBytes: Int, to slot: AddressBudgets.Slot)
    /// Counts a query. Returns false if too many queries of this address are under way.
    func beginInquiry(in slot: AddressBudgets.Slot) -> Bool
    func endInquiry(in slot: AddressBudgets.Slot)
}

/// A reader that pauses while storage is far behind, or while its address is over its budget.
protocol PausedReader: AnyObject {
    func resumeReading()
}
