// Sends a text over a raw connection, or sends it back (bindings/ECHO.md).
//
//     echo serve
//     echo call CODE TEXT
//     echo me FOLDER
//     echo serve FOLDER NODEID
//     echo call FOLDER NODEID TEXT

package org.wraith.examples

import kotlinx.coroutines.runBlocking
import org.wraith.Callers
import org.wraith.ConnectOptions
import org.wraith.Contact
import org.wraith.Node
import org.wraith.NodeOptions
import org.wraith.ServiceAddress
import org.wraith.ServiceOptions
import org.wraith.WraithException
import java.io.FileDescriptor
import java.io.FileOutputStream
import java.io.PrintStream
import kotlin.system.exitProcess

private const val TEXT_MAX = 65_536uL

/** Returns the node with its state in this folder, which knows this friend. */
private fun friendOf(folder: String, nodeId: String) = Node(NodeOptions(stateFolder = folder)).apply {
    addContact(Contact("friend", nodeId))
}

private suspend fun serve(node: Node, callers: Callers) {
    val service = node.serve(callers, ServiceOptions())
    say(service.code()?.let { "code $it" } ?: "ready")
    val connection = checkNotNull(service.accept()) { "nobody shuts the service down" }
    say("peer ${connection.peer()}")
    val stream = connection.acceptStream()
    stream.write(stream.readToEnd(TEXT_MAX))
    stream.finish()
    connection.closed()
}

private suspend fun call(node: Node, to: ServiceAddress, text: String) {
    val connection = node.connect(to, ConnectOptions())
    say("peer ${connection.peer()}")
    val stream = connection.openStream()
    stream.write(text.toByteArray())
    stream.finish()
    say("> " + stream.readToEnd(TEXT_MAX).decodeToString())
    connection.closeWith(0x100uL, "")
    connection.closed()
}

private suspend fun run(words: List<String>) {
    val (verb, arguments) = words.firstOrNull() to words.drop(1)
    when (verb to arguments.size) {
        "me" to 1 -> say("me ${Node(NodeOptions(stateFolder = arguments[0])).nodeId()}")
        "serve" to 0 -> serve(Node(NodeOptions()), Callers.Code)
        "serve" to 2 -> serve(friendOf(arguments[0], arguments[1]), Callers.Contacts("echo"))
        "call" to 2 -> call(Node(NodeOptions()), ServiceAddress.Source(arguments[0]), arguments[1])
        "call" to 3 -> call(friendOf(arguments[0], arguments[1]), ServiceAddress.Contact("friend", "echo"), arguments[2])
        else -> {
            System.err.println("echo serve | call CODE TEXT | me FOLDER | serve FOLDER NODEID | call FOLDER NODEID TEXT")
            exitProcess(2)
        }
    }
}

fun main(words: Array<String>) = try {
    runBlocking { run(words.toList()) }
} catch (error: WraithException) {
    System.err.println(error)
    exitProcess(1)
}

private val screen = PrintStream(FileOutputStream(FileDescriptor.out), true, Charsets.UTF_8)

private fun say(line: String) = screen.println(line)
