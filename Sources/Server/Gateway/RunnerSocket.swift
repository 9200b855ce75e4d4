import Signaling
import Wire

/// The runner's interface to a socket. Used only on the runner's event loop.
protocol RunnerSocket: AnyObject {
    /// The account of the client's address. Nil if the socket is closed, or if it does not count against an address.
    var slot: AddressBudgets.Slot? { get }
    /// Updates the count of queued bytes. Called after messages for this socket that wait for a commit were added.
    func queueChanged()
    /// Queues one message. `flush` sends it.
    func write(_ bytes: [UInt8])
    func flush()
    func close(_ code: CloseCode, _ reason: String)
    /// Closes without a close frame, so that the client resumes.
    func drop()
    /// Delivers the reply to a request. Only WHIP and WHEP resources make requests.
    func reply(_ reply: ResourceReply)
    /// Delivers the answer to a request that was submitted with `HubRunner.ask`.
    func answer(_ reply: OperatorReply)
}

extension RunnerSocket {
    func reply(_ reply: ResourceReply) {}
    func answer(_ reply: OperatorReply) {}
    // Sockets without a send queue, such as WHIP and WHEP resources, need neither of the following two functions.
    func drop() {}
    func queueChanged() {}
}

/// The runner's interface to the budgets of address blocks.
protocol ClientBudgets: AnyObject {
    /// Returns what a client with this slot may currently store.
    func storagePermit(_ slot: AddressBudgets.Slot?) -> StoragePermit
    /// Charges the data that a client caused to be stored.
    func charge(storedBytes: Int, to slot: AddressBudgets.Slot)
    /// Counts a query. Returns false, without counting it, if too many queries of this address are in progress.
    func beginQuery(in slot: AddressBudgets.Slot) -> Bool
    func endQuery(in slot: AddressBudgets.Slot)
}

/// A reader that pauses while storage is far behind, or while its address exceeds its budget.
protocol PausedReader: AnyObject {
    func resumeReading()
}
