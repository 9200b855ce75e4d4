// Expect: is not available due to missing import of defining module
import SwiftUI

struct Wrong: View {
    var body: some View { TextField("Server", text: .constant("")).keyboardType(.URL) }
}
